package fabric

import (
	"fmt"
	"net/netip"
	"slices"

	"weft/internal/classifier"
	"weft/topology"
)

// ClassifierStats counts what a Classifier and its program did.
type ClassifierStats struct {
	Flows   uint64 `json:"flows"`   // that got a port
	Rescued uint64 `json:"rescued"` // that got another one, as theirs was dead
	Full    uint64 `json:"full"`    // packets that went by host ID, as there was no room for their flow
	Moved   uint64 `json:"moved"`   // by rearrangements
	Idle    uint64 `json:"idle"`    // forgotten
	Known   int    `json:"known"`   // flows now
}

// sums are in the order of the enum in bpf/classify.c.
func (s *ClassifierStats) sums() []*uint64 { return []*uint64{&s.Flows, &s.Rescued, &s.Full} }

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
