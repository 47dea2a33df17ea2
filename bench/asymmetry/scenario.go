package asymmetry

import (
	"fmt"

	"weft/bench/named"
	"weft/topology"
)

// Scenario is a fabric and its fault.
type Scenario struct {
	Name  string
	About string // the fault
	// Link is the link that is down or slow, by its name; "" if none is.
	Link string
	Slow float64 // its share of the other links' rate; 0: it is down
	// Told says that hosts know the links' rates, and weigh paths by them.
	Told bool
}

// The racks are Luopan's T1, T2 and T3 and the spines A1 to A4 (Fig. 1a).
const (
	racks  = 3
	spines = 4

	linkA1T1 = "e0.0-a0.0"
	linkA1T3 = "e0.2-a0.0"
)

// The receiving rack, and the sending one that reaches it over every spine.
const (
	receivers = racks - 1
	observed  = 1
)

// hostRate is that of hosts' links, by that of the links between switches: hosts
// are not to be the bottleneck.
const hostRate = 2

// Scenarios returns all scenarios.
func Scenarios() []Scenario {
	return []Scenario{
		{Name: "link-down", About: "A1-T1 is down, which everybody knows (Luopan Fig. 1a)", Link: linkA1T1},
		{Name: "symmetric", About: "nothing is wrong"},
		{Name: "slow-link", About: "A1-T3 has a quarter of the rate, which no host is told", Link: linkA1T3, Slow: 0.25},
		{Name: "slow-link-told", About: "A1-T3 has a quarter of the rate, by which hosts weigh paths", Link: linkA1T3, Slow: 0.25, Told: true},
	}
}

// SelectScenarios returns the scenarios with the given names, in that order; all if
// there are none.
func SelectScenarios(names []string) ([]Scenario, error) {
	all := Scenarios()
	if len(names) == 0 {
		return all, nil
	}
	return named.Select("scenario", all, func(s Scenario) string { return s.Name }, names)
}

// fabric returns the fabric with links of rateMbit, and the same as hosts are told
// that it is.
func (s Scenario) fabric(hosts int, rateMbit float64) (real, known *topology.Topology, err error) {
	shape := fmt.Sprintf("leaf-spine:leaves=%d,spines=%d,hosts=%d", racks, spines, hosts)
	spec := fmt.Sprintf("%s,host-rate=%g,fabric-rate=%g", shape, hostRate*rateMbit, rateMbit)
	if s.Slow > 0 {
		spec += fmt.Sprintf(",%s=%g", s.Link, s.Slow*rateMbit)
	}
	if real, err = topology.Parse(spec); err != nil {
		return nil, nil, err
	}
	known = real
	if !s.Told {
		if known, err = topology.Parse(shape); err != nil {
			return nil, nil, err
		}
	}
	if s.Link != "" && s.Slow == 0 {
		l, err := real.LinkByName(s.Link)
		if err != nil {
			return nil, nil, err
		}
		real, known = real.Without(l.ID), known.Without(l.ID)
	}
	return real, known, nil
}

// stream is a long transfer from one host to another.
type stream struct{ from, to topology.NodeID }

// streams are those of all hosts of the sending racks, so many per host: each to
// another host of the receiving rack, so that all of these get as many.
func streams(t *topology.Topology, perHost int) (all []stream) {
	n := t.NumHosts() / racks
	for from := range receivers * n {
		for i := range perHost {
			to := receivers*n + (from+i)%n
			all = append(all, stream{topology.NodeID(from), topology.NodeID(to)})
		}
	}
	return all
}

// uplinks are the links that the paths P1, P2, ... take from the observed rack to
// the receiving one, by which nothing but data for it goes up.
func uplinks(t *topology.Topology) (links []topology.LinkID) {
	n := t.NumHosts() / racks
	set := t.Paths(topology.NodeID(observed*n), topology.NodeID(receivers*n))
	for path := range spines {
		links = append(links, set.Path(path).Links[1])
	}
	return links
}

// pathName is Luopan's name of a path, by its number.
func pathName(n int) string { return fmt.Sprintf("P%d", n+1) }
