package hedera

import (
	"fmt"
	"slices"

	"weft/topology"
)

// Flow is an elephant under way.
type Flow struct {
	Pair
	// Path is the flow's. Before a Rule has placed it, it is the caller's.
	Path   int
	Placed bool // by a Rule

	demand float64 // what is reserved for it; 0: nothing
}

// Rule gives elephants their paths.
type Rule interface {
	// Round places flows: it sets Path and Placed. It is called once a period, with all
	// elephants.
	Round(flows []*Flow)
	// Keep tells of a flow that has its Path already, from another scheduler. Round may
	// give it another one.
	Keep(f *Flow)
	// End takes back the placement of a flow: it has ended, or its path has failed.
	End(f *Flow)
}

// Rules are the names of rules.
var Rules = []string{"annealing", "first-fit", "exclusive"}

// NewRule returns a rule by its name. Annealing has the configuration c.
func NewRule(name string, s Space, c AnnealingConfig) (Rule, error) {
	switch name {
	case "annealing":
		a, err := NewAnnealing(s, c)
		if err != nil {
			return nil, err
		}
		return NewAnnealed(a), nil
	case "first-fit":
		return NewGlobalFirstFit(s), nil
	case "exclusive":
		return NewCentral(s), nil
	}
	return nil, fmt.Errorf("hedera: rule %q is none of %v", name, Rules)
}

// KnownRule reports whether NewRule knows a name.
func KnownRule(name string) bool { return slices.Contains(Rules, name) }

// GlobalFirstFit reserves once a period the demand of flows without a reservation.
// Reservations last as long as the flows (thesis §4.2.3).
type GlobalFirstFit struct {
	net       Network
	fit       *FirstFit
	estimator Estimator
	pairs     []Pair
}

// NewGlobalFirstFit returns one with nothing reserved.
func NewGlobalFirstFit(n Network) *GlobalFirstFit {
	return &GlobalFirstFit{net: n, fit: NewFirstFit(n), estimator: Estimator{Links: linksOf(n)}}
}

// Round is Rule's.
func (g *GlobalFirstFit) Round(flows []*Flow) {
	g.pairs = pairsOf(g.pairs[:0], flows)
	for i, d := range g.estimator.Estimate(g.pairs, g.net.Hosts()) {
		f := flows[i]
		if f.demand > 0 {
			continue
		}
		if f.Placed { // kept
			g.fit.Reserve(f.Pair, f.Path, d)
			f.demand = d
			continue
		}
		if path, ok := g.fit.Place(f.Pair, d); ok {
			f.Path, f.Placed, f.demand = path, true, d
		}
	}
}

// Keep is Rule's. The flow's demand is reserved with the next Round.
func (g *GlobalFirstFit) Keep(f *Flow) { f.Placed = true }

// End is Rule's.
func (g *GlobalFirstFit) End(f *Flow) {
	if f.demand > 0 {
		g.fit.Release(f.Pair, f.Path, f.demand)
	}
	f.Placed, f.demand = false, 0
}

// Annealed moves all flows to the paths of an Annealing, once a period.
type Annealed struct {
	annealing *Annealing
	estimator Estimator
	pairs     []Pair
}

// NewAnnealed returns a rule by a search.
func NewAnnealed(a *Annealing) *Annealed {
	return &Annealed{annealing: a, estimator: Estimator{Links: linksOf(a.space)}}
}

// Round is Rule's.
func (s *Annealed) Round(flows []*Flow) {
	s.pairs = pairsOf(s.pairs[:0], flows)
	s.annealing.Schedule(s.pairs, s.estimator.Estimate(s.pairs, s.annealing.space.Hosts()))
	for _, f := range flows {
		f.Path, f.Placed = s.annealing.Path(f.Pair), true
	}
}

// Keep is Rule's.
func (s *Annealed) Keep(f *Flow) {
	s.annealing.Prefer(f.Pair, f.Path)
	f.Placed = true
}

// End is Rule's.
func (s *Annealed) End(f *Flow) { f.Placed = false }

// Central gives each link to one elephant (thesis §3.1.7). A flow that finds no free path
// stays where it is, and is tried again each round.
type Central struct{ links *Exclusive }

// NewCentral returns one with all links free.
func NewCentral(n Network) *Central { return &Central{NewExclusive(n)} }

// Round is Rule's.
func (c *Central) Round(flows []*Flow) {
	for _, f := range flows {
		if f.Placed {
			continue
		}
		if path, ok := c.links.Place(f.Pair); ok {
			f.Path, f.Placed = path, true
		}
	}
}

// Keep is Rule's. Of two flows that overlap the second is placed anew.
func (c *Central) Keep(f *Flow) { f.Placed = c.links.Reserve(f.Pair, f.Path) }

// End is Rule's.
func (c *Central) End(f *Flow) {
	if f.Placed {
		c.links.Release(f.Pair, f.Path)
	}
	f.Placed = false
}

// linksOf returns the rates of hosts' links for an Estimator, if they differ.
func linksOf(n Network) []float64 {
	f, ok := n.(Fabric)
	if !ok {
		return nil
	}
	list, differ := make([]float64, f.Hosts()), false
	for h := range list {
		list[h] = f.HostLink(topology.NodeID(h)) / f.HostRate()
		differ = differ || list[h] != 1
	}
	if !differ {
		return nil
	}
	return list
}

func pairsOf(pairs []Pair, flows []*Flow) []Pair {
	for _, f := range flows {
		pairs = append(pairs, f.Pair)
	}
	return pairs
}
