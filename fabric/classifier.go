package fabric

import (
	"fmt"
	"net/netip"
	"slices"

	"weft/internal/balance"
	"weft/internal/classifier"
	"weft/topology"
)

// ClassifierStats is what a Classifier and its program have done since it was opened.
type ClassifierStats struct {
	Rule    string `json:"rule"`
	Known   int    `json:"known"`   // flows now
	Flows   uint64 `json:"flows"`   // that got a port
	Rescued uint64 `json:"rescued"` // that got another one, as theirs was dead
	Moved   uint64 `json:"moved"`   // flows, by rearrangements
	Evicted uint64 `json:"evicted"` // flows that were forgotten, as they had sent nothing for 10 s
	Full    uint64 `json:"full"`    // packets that went by host ID, as there was no room for their flow, or their source has its share of the room
	Late    uint64 `json:"late"`    // packets that went by host ID, as the agent was late
}

// sums are in the order of the enum in bpf/classify.c.
func (s *ClassifierStats) sums() []*uint64 {
	return []*uint64{&s.Flows, &s.Rescued, &s.Full, &s.Late}
}

// Classifies reports whether a rule needs OpenClassifier at switches that have ports up.
func Classifies(rule string) bool {
	r, err := balance.Parse(rule)
	return err == nil && r.Kind == balance.Classifier
}

// classifierRule reads a rule that must be a classifier's.
func classifierRule(text string) (balance.Rule, error) {
	r, err := balance.Parse(text)
	if err == nil && r.Kind != balance.Classifier {
		err = fmt.Errorf("rule %v: must be %v", r, balance.Classifier)
	}
	return r, err
}

// lowerPorts are the ports whose packets are classified: those that lead down. It also
// returns the prefix of what does not go up from there.
func (p NodePlan) lowerPorts() (names []string, below netip.Prefix, err error) {
	switch {
	case len(p.Suffixes) == 0:
		return nil, below, fmt.Errorf("%s has no two-level tables, by which the classifier sends flows: plan it with routing %s; a core needs none", p.Node, RoutingTwoLevel)
	case len(p.Suffixes) > classifier.MaxPorts:
		return nil, below, fmt.Errorf("%s has %d ports up, a classifier up to %d", p.Node, len(p.Suffixes), classifier.MaxPorts)
	}
	for _, port := range p.Ports {
		if !slices.ContainsFunc(p.Suffixes, func(g SuffixGroup) bool { return g.Port == port.Name }) {
			names = append(names, port.Name)
		}
	}
	bits := 24 // of a rack
	if p.Layer == topology.LayerAgg.String() {
		bits = 16 // of a pod
	}
	return names, netip.PrefixFrom(p.Address, bits).Masked(), nil
}
