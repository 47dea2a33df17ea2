package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"strings"

	"weft/drb"
	"weft/encap"
	"weft/policy"
	"weft/topology"
	"weft/topology/graph"
)

// runGraph is run for a fabric that is data.
func (f pathsFlags) runGraph(w io.Writer, g *graph.Graph, p policy.Policy) error {
	carrier, err := encap.ParseCarrier(f.encap)
	if err != nil {
		return usagef("--encap: %w", err)
	}
	if carrier == encap.CarrierMPLS {
		return usagef("--encap %s: needs the ports of switches, which a graph does not say; use ipip or srv6", f.encap)
	}
	from, self, err := graphHost(g, "--from", f.from)
	if err != nil {
		return err
	}
	to, peer, err := graphHost(g, "--to", f.to)
	if err != nil {
		return err
	}
	t, err := topology.FromGraph(g, self)
	if err != nil {
		return err
	}
	p = p.At(policy.Options{}.Rate(t.Slowest()))
	if carrier == encap.CarrierSRv6 {
		if err := t.CheckSIDs(); err != nil {
			return usagef("--encap srv6: %w", err)
		}
	}
	set, paths := t.PathsTo(0, peer), g.Paths(from, to)
	if set.Direct() {
		fmt.Fprintf(w, "%s to %s: direct, both are at %s; no bounce, no encapsulation\n", f.from, f.to, t.Node(t.EdgeOf(0)).Name)
		return nil
	}
	weighted := set.Weighted()
	if len(weighted) == 0 {
		return errors.New("no switch is above both hosts")
	}
	n := f.n
	if n == 0 {
		n = len(weighted)
	}
	selector := drb.NewSelector(p.Rule, set.Ordered(p.Rule.Order, weighted), f.seed)
	selector.StartAt(f.start)
	flows := rand.New(rand.NewPCG(f.seed, 0))
	var list []step
	for range n {
		i, _ := selector.Next(flows.Uint64())
		path := &paths.List[i]
		s := step{Bounce: set.Name(i), Address: set.Addr(i).String(),
			Hops: []string{g.Node(from).Name, g.Node(path.Edge()).Name, set.Name(i), t.Node(set.Path(i).Hops[2]).Name, g.Node(to).Name}}
		if carrier == encap.CarrierSRv6 {
			sid, _ := set.SID(i, peer.Is6())
			s.Address = sid.String()
		}
		if up, down := paths.Ways(i); up*down > 1 {
			s.Ways = []int{up, down}
		}
		if ups := t.Uplinks(); len(ups) > 1 {
			s.Uplink = ups[set.From(i)].Port
		}
		list = append(list, s)
	}
	if f.json {
		return printJSON(w, list)
	}
	fmt.Fprintf(w, "%s: %s for every %s, %s to %s, %d paths\n", p.Name, p.How(), p.Unit, g.Node(from).Name, g.Node(to).Name, len(set.Live))
	for _, s := range list {
		fmt.Fprintf(w, "%s (%s)  %s\n", s.Bounce, s.Address, s.graphHops())
	}
	notes, _ := groupNotes(set, nil)
	for _, line := range notes {
		fmt.Fprintln(w, line)
	}
	return nil
}

// graphHops are the hops, with the number of ways between switches where there are several.
func (s step) graphHops() string {
	between := []string{" > ", " > ", " > ", " > "}
	if s.Uplink != "" {
		between[0] = fmt.Sprintf(" >[%s]> ", s.Uplink)
	}
	for i, n := range s.Ways {
		if n > 1 {
			between[1+i] = fmt.Sprintf(" >[%d ways, by the switches' ECMP]> ", n)
		}
	}
	var b strings.Builder
	for i, hop := range s.Hops {
		b.WriteString(hop)
		if i < len(between) {
			b.WriteString(between[i])
		}
	}
	return b.String()
}

// graphHost finds a host by its name or one of its addresses, and its IPv4 address.
func graphHost(g *graph.Graph, flag, name string) (graph.NodeID, netip.Addr, error) {
	id, ok := g.ByName(name)
	if a, err := netip.ParseAddr(name); err == nil {
		id, ok = g.ByAddr(a)
	}
	if !ok || int(id) >= g.NumHosts() {
		return 0, netip.Addr{}, usagef("%s %q: the graph has no such host; name one by its name or address", flag, name)
	}
	if a := g.Node(id).IPv4(); a.IsValid() {
		return id, a, nil
	}
	return 0, netip.Addr{}, usagef("%s %s: the host has no IPv4 address; name another, or take --encap srv6", flag, name)
}
