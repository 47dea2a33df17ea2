package source

import (
	"cmp"
	"net/netip"
	"slices"

	"weft/internal/kernel"
	"weft/internal/live"
	"weft/internal/overview"
	"weft/topology"
)

// waysOf is what a host says of its ways up.
func waysOf(name string, s *overview.Host) (all []live.WaySample) {
	for _, w := range s.Ways() {
		all = append(all, live.WaySample{Host: name, Bounce: w.Bounce, Uplink: w.Uplink, State: w.State, Why: w.Why,
			Bytes: w.Bytes, RTT50: w.RTT50, RTT99: w.RTT99, Loss: w.Loss})
	}
	return all
}

// hostOf is how a host does.
func hostOf(name string, s *overview.Host) live.Host {
	v := s.View(nil, 0)
	return live.Host{Name: name, Verdict: v.Verdict, Why: v.Why, About: v.About}
}

// suspectsOf is what a host blames.
func suspectsOf(name string, s *overview.Host) (all []live.Suspect) {
	if s.Failures == nil {
		return nil
	}
	for _, b := range s.Failures.Blamed {
		all = append(all, live.Suspect{Host: name, Places: b.Places, Why: b.Why, Loss: b.Loss, Lost: b.Lost})
	}
	return all
}

// connSamples is what the kernel of a node says of its connections, the busiest first. nameOf
// names the hosts at the other ends.
func connSamples(name string, conns []kernel.Connection, nameOf func(netip.Addr) string) (all []live.ConnSample) {
	slices.SortFunc(conns, func(a, b kernel.Connection) int { return cmp.Compare(b.Sent+b.Received, a.Sent+a.Received) })
	for _, c := range conns {
		all = append(all, live.ConnSample{From: name, To: nameOf(c.Remote.Addr()), Local: c.Local.String(), Remote: c.Remote.String(), State: c.State,
			Sent: c.Sent, Received: c.Received, Waiting: uint64(c.Waiting), Segments: uint64(c.Segments), Resent: uint64(c.Resent),
			OutOfOrder: uint64(c.OutOf), RTT: c.RTT})
	}
	return all
}

// bothEnds joins what both ends of a connection say: the one that has sent more speaks, and the
// other one says what it got out of order.
func bothEnds(all []live.ConnSample) (joined []live.ConnSample) {
	slices.SortStableFunc(all, func(a, b live.ConnSample) int { return cmp.Compare(b.Sent, a.Sent) })
	at := make(map[string]int, len(all))
	for _, c := range all {
		if i, ok := at[c.Remote+" "+c.Local]; ok {
			joined[i].OutOfOrder += c.OutOfOrder
			continue
		}
		at[c.Local+" "+c.Remote] = len(joined)
		joined = append(joined, c)
	}
	return joined
}

// pathsOf returns the paths between two nodes: those of the topology between hosts of a computed
// one, else all that lead up and down.
func pathsOf(t *topology.Topology, f *live.Fabric, from, to int) []live.Path {
	if t == nil || from == to || from < 0 || to < 0 || from >= t.NumHosts() || to >= t.NumHosts() {
		return f.Paths(from, to)
	}
	set := t.Paths(topology.NodeID(from), topology.NodeID(to))
	if set.Direct() {
		return f.Paths(from, to)
	}
	all := []live.Path{}
	for n := range min(set.Count(), live.MaxPaths) {
		p := live.Path{Bounce: int(set.Bounce(n))}
		path := set.Path(n)
		for _, id := range path.Hops {
			p.Nodes = append(p.Nodes, int(id))
		}
		for _, id := range path.Links {
			p.Links = append(p.Links, int(id))
		}
		all = append(all, p)
	}
	return all
}
