package graph

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// New makes a Graph. The Spec's slices become the Graph's. An error names the node or the
// link, with its line, and says what is wanted.
func New(s Spec) (*Graph, error) {
	if len(s.Nodes) > MaxNodes || len(s.Links) > MaxLinks {
		return nil, fmt.Errorf("graph: %d nodes and %d links, must be up to %d and %d", len(s.Nodes), len(s.Links), MaxNodes, MaxLinks)
	}
	g := &Graph{byName: make(map[string]NodeID, len(s.Nodes)), byAddr: make(map[netip.Addr]NodeID), byNet: make(map[netip.Prefix]NodeID)}
	for _, step := range []func(Spec) error{g.setNodes, g.setLinks, g.setAbove, g.setAddresses, g.setSIDs} {
		if err := step(s); err != nil {
			return nil, fmt.Errorf("graph: %w", err)
		}
	}
	return g, nil
}

// errorf returns an error about a node or a link, with its line if it has one.
func errorf(line int, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if line > 0 {
		return fmt.Errorf("line %d: %w", line, err)
	}
	return err
}

func (g *Graph) setNodes(s Spec) error {
	g.nodes = s.Nodes
	slices.SortStableFunc(g.nodes, func(a, b Node) int { return cmp.Compare(a.Tier, b.Tier) })
	for i, n := range g.nodes {
		switch {
		case n.Name == "" || strings.ContainsAny(n.Name, " \t\n,:/"):
			return errorf(n.Line, "node %q: a name must not be empty or contain spaces, commas, colons or slashes", n.Name)
		case n.Tier < 0 || n.Tier > MaxTier:
			return errorf(n.Line, "node %s: tier %d, must be from 0 (hosts) over 1 (edge switches) to %d", n.Name, n.Tier, MaxTier)
		case n.Tier > 1 && len(n.Addresses) == 0:
			return errorf(n.Line, "switch %s: it has no address, and so packets cannot bounce there", n.Name)
		case n.Tier > 1 && len(n.Prefixes) > 0:
			return errorf(n.Line, "switch %s: only edge switches (tier 1) have racks, and it is in tier %d", n.Name, n.Tier)
		}
		if other, ok := g.byName[n.Name]; ok {
			return errorf(n.Line, "node %s: another one%s has this name", n.Name, g.at(other))
		}
		g.byName[n.Name] = NodeID(i)
		g.first[n.Tier+1] = NodeID(i + 1)
	}
	for tier := 1; tier < len(g.first); tier++ {
		g.first[tier] = max(g.first[tier], g.first[tier-1])
	}
	if g.first[1] == g.first[2] {
		return fmt.Errorf("there is no switch of tier 1")
	}
	return nil
}

// at says in which line a node stands.
func (g *Graph) at(id NodeID) string {
	if line := g.nodes[id].Line; line > 0 {
		return fmt.Sprintf(" (line %d)", line)
	}
	return ""
}

func (g *Graph) setLinks(s Spec) error {
	type end struct {
		node NodeID
		port string
	}
	type cable struct {
		Link
		ends [2]NodeID
	}
	list := make([]cable, len(s.Links))
	used := make(map[end]bool)
	for i, l := range s.Links {
		c := cable{Link: l}
		for k, name := range l.Ends {
			id, ok := g.byName[name]
			if !ok {
				return errorf(l.Line, "link %s: there is no node %q", l.name(), name)
			}
			if e := (end{id, l.Ports[k]}); e.port != "" && used[e] {
				return errorf(l.Line, "link %s: port %s of %s has another cable", l.name(), e.port, name)
			} else {
				used[e] = true
			}
			c.ends[k] = id
		}
		if l.Rate < 0 {
			return errorf(l.Line, "link %s: rate %v, must not be negative", l.name(), l.Rate)
		}
		low, high := g.nodes[c.ends[0]].Tier, g.nodes[c.ends[1]].Tier
		if low > high {
			c.ends[0], c.ends[1] = c.ends[1], c.ends[0]
			c.Ends[0], c.Ends[1] = c.Ends[1], c.Ends[0]
			c.Ports[0], c.Ports[1] = c.Ports[1], c.Ports[0]
			low, high = high, low
		}
		if high != low+1 {
			return errorf(l.Line, "link %s: it joins tiers %d and %d; a link must lead to the next tier, or going up and down would not be all that there is",
				l.name(), low, high)
		}
		list[i] = c
	}
	slices.SortStableFunc(list, func(a, b cable) int { return cmp.Compare(a.ends[0], b.ends[0]) })
	g.links, g.ends = make([]Link, len(list)), make([][2]NodeID, len(list))
	g.up, g.down = make([][]Port, len(g.nodes)), make([][]Port, len(g.nodes))
	for i, c := range list {
		g.links[i], g.ends[i] = c.Link, c.ends
		g.up[c.ends[0]] = append(g.up[c.ends[0]], Port{LinkID(i), c.ends[1]})
		g.down[c.ends[1]] = append(g.down[c.ends[1]], Port{LinkID(i), c.ends[0]})
	}
	return nil
}

// name is how errors call a link.
func (l Link) name() string { return l.Ends[0] + " to " + l.Ends[1] }

// setAbove finds what is above each node, and refuses nodes that are wired to nothing.
func (g *Graph) setAbove(Spec) error {
	g.above = make([][]NodeID, len(g.nodes))
	for i := len(g.nodes) - 1; i >= 0; i-- {
		n := g.nodes[i]
		if n.Tier == 0 && len(g.up[i]) == 0 {
			return errorf(n.Line, "host %s: it has no link", n.Name)
		}
		if n.Tier > 1 && len(g.down[i]) == 0 {
			return errorf(n.Line, "switch %s: it has no link to tier %d", n.Name, n.Tier-1)
		}
		if n.Tier == 0 {
			continue // it is asked for by its edge switches
		}
		list := []NodeID{NodeID(i)}
		for k, p := range g.up[i] {
			if k == 0 || g.up[i][k-1].Peer != p.Peer {
				list = append(list, g.above[p.Peer]...)
			}
		}
		slices.Sort(list)
		g.above[i] = slices.Clip(slices.Compact(list))
	}
	return nil
}

func (g *Graph) setAddresses(Spec) error {
	for i, n := range g.nodes {
		id := NodeID(i)
		for _, a := range n.Addresses {
			if !a.IsValid() || a.Is4In6() || a.Zone() != "" || a.IsUnspecified() || a.IsMulticast() || a.IsLoopback() {
				return errorf(n.Line, "node %s: %v is no address of a single node", n.Name, a)
			}
			if other, ok := g.byAddr[a]; ok {
				return errorf(n.Line, "node %s: %s%s has the address %v, too", n.Name, g.nodes[other].Name, g.at(other), a)
			}
			g.byAddr[a] = id
		}
		for _, p := range n.Prefixes {
			if !p.IsValid() || p != p.Masked() || p.Addr().Is4In6() {
				return errorf(n.Line, "node %s: prefix %v, must be a network such as 192.168.1.0/26", n.Name, p)
			}
			if other, ok := g.byNet[p]; ok && !g.share(id, other) {
				return errorf(n.Line, "node %s: %s%s has the prefix %v, too", n.Name, g.nodes[other].Name, g.at(other), p)
			} else if ok {
				continue
			}
			g.byNet[p] = id
			f := family(p.Addr())
			if !slices.Contains(g.bits[f], p.Bits()) {
				g.bits[f] = append(g.bits[f], p.Bits())
			}
		}
	}
	for f := range g.bits {
		slices.SortFunc(g.bits[f], func(a, b int) int { return cmp.Compare(b, a) })
	}
	return g.checkRacks()
}

// share reports whether two edge switches may serve one rack: some host is wired to both.
func (g *Graph) share(a, b NodeID) bool {
	if g.nodes[a].Tier != 1 || g.nodes[b].Tier != 1 {
		return false
	}
	for _, p := range g.down[a] {
		for _, q := range g.up[p.Peer] {
			if q.Peer == b {
				return true
			}
		}
	}
	return false
}

// checkRacks refuses racks that overlap. A host's prefix may lie within its rack's.
func (g *Graph) checkRacks() error {
	first, end := g.Tier(1)
	for _, n := range g.nodes[first:end] {
		for _, p := range n.Prefixes {
			for _, bits := range g.bits[family(p.Addr())] {
				if bits >= p.Bits() {
					continue
				}
				wider, _ := p.Addr().Prefix(bits)
				if other, ok := g.byNet[wider]; ok {
					return errorf(n.Line, "switch %s: its rack %v lies within %v of %s%s; packets to it would have two places to go",
						n.Name, p, wider, g.nodes[other].Name, g.at(other))
				}
			}
		}
	}
	return nil
}
