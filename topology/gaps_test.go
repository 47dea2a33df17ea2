package topology

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"weft/topology/graph"
)

// heard is a host at leaf 0, and so many spines; change changes what switches tell.
func heard(t *testing.T, spines int, sids bool, six bool, change func(*graph.Spec)) (*Topology, error) {
	t.Helper()
	var s graph.Spec
	add := func(n graph.Node, up ...string) {
		s.Nodes = append(s.Nodes, n)
		for _, end := range up {
			s.Links = append(s.Links, graph.Link{Ends: [2]string{n.Name, end}})
		}
	}
	var all []string
	for i := range spines {
		all = append(all, fmt.Sprint("s", i))
		add(graph.Node{Name: all[i], Tier: 2, Addresses: []netip.Addr{netip.AddrFrom4([4]byte{172, 16, byte(i >> 8), byte(i)}), netip.MustParseAddr(fmt.Sprintf("2001:db8:f::%x", i+1))},
			SIDs: graph.SIDs{Node: netip.MustParsePrefix(fmt.Sprintf("fcbb:bbbb:%x::/48", i+1))}})
	}
	for i := range 3 {
		add(graph.Node{Name: fmt.Sprint("e", i), Tier: 1, Prefixes: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i), 0}), 24), netip.MustParsePrefix(fmt.Sprintf("2001:db8:%x::/64", i+1))}}, all...)
	}
	own := []netip.Addr{netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("2001:db8:1::2")}
	add(graph.Node{Name: "h", Addresses: own}, "e0")
	if change != nil {
		change(&s)
	}
	g, err := graph.New(s)
	if err != nil {
		t.Fatal(err)
	}
	if six {
		return FromHeard(g, own[1], sids)
	}
	return FromHeard(g, own[0], sids)
}

// by are the bouncing switches of the paths to a rack, nil if it is not known.
func by(u *Topology, rack string) (names []string) {
	for edge := range u.Racks() {
		if u.Node(edge).Name == rack {
			s := u.Paths(0, edge)
			for _, n := range s.Live {
				names = append(names, u.Node(s.Bounce(n)).Name)
			}
		}
	}
	return names
}

// What a switch does not tell takes its own paths out, in the family of which it is.
func TestFromHeard_gaps(t *testing.T) {
	node := func(s *graph.Spec, name string) *graph.Node {
		return &s.Nodes[slices.IndexFunc(s.Nodes, func(n graph.Node) bool { return n.Name == name })]
	}
	for _, c := range []struct {
		name      string
		sids, six bool
		change    func(*graph.Spec)
		want      []string // to e1
	}{
		{"nothing", true, true, nil, []string{"s0", "s1", "s2"}},
		{"no IPv6 at s1", false, true, func(s *graph.Spec) { n := node(s, "s1"); n.Addresses = n.Addresses[:1] }, []string{"s0", "s2"}},
		{"no IPv6 at s1, IPv4", false, false, func(s *graph.Spec) { n := node(s, "s1"); n.Addresses = n.Addresses[:1] }, []string{"s0", "s1", "s2"}},
		{"no SIDs at s2", true, false, func(s *graph.Spec) { node(s, "s2").SIDs = graph.SIDs{} }, []string{"s0", "s1"}},
		{"e1 has s0 only, which has no IPv6", false, true, func(s *graph.Spec) {
			s.Links = slices.DeleteFunc(s.Links, func(l graph.Link) bool { return l.Ends[0] == "e1" && l.Ends[1] != "s0" })
			n := node(s, "s0")
			n.Addresses = n.Addresses[:1]
		}, nil},
	} {
		u, err := heard(t, 3, c.sids, c.six, c.change)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := by(u, "e1"); !slices.Equal(got, c.want) {
			t.Errorf("%s: e1 by %v, want %v", c.name, got, c.want)
		}
		if _, known := u.RackAt(netip.MustParseAddr("2001:db8:2::9")); known != (c.want != nil) {
			t.Errorf("%s: e1 is known: %t", c.name, known)
		}
		if c.sids && u.CheckSIDs() != nil {
			t.Errorf("%s: %v", c.name, u.CheckSIDs())
		}
	}
	u, err := heard(t, MaxPaths+100, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(by(u, "e1")); n != MaxPaths {
		t.Errorf("%d paths of more than %d", n, MaxPaths)
	}
}

// Other addresses, SIDs, weights and rates are more, and links that are missing are not.
func TestWithin_differs(t *testing.T) {
	rate := func(s *graph.Spec, r0, r1, r2 float64) {
		for i := range s.Links {
			s.Links[i].Rate = map[string]float64{"s0": r0, "s1": r1, "s2": r2, "e0": 10}[s.Links[i].Ends[1]]
		}
	}
	was, err := heard(t, 3, true, false, func(s *graph.Spec) { rate(s, 10, 10, 40) })
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		more   bool
		change func(*graph.Spec)
	}{
		{"the same", false, func(s *graph.Spec) { rate(s, 10, 10, 40) }},
		{"all are twice as fast", true, func(s *graph.Spec) { rate(s, 20, 20, 80) }},
		{"a link is missing", false, func(s *graph.Spec) {
			rate(s, 10, 10, 40)
			s.Links = slices.DeleteFunc(s.Links, func(l graph.Link) bool { return l.Ends == [2]string{"e1", "s1"} })
		}},
		{"s0 is faster", true, func(s *graph.Spec) { rate(s, 20, 10, 40) }},
		{"all are alike", true, func(s *graph.Spec) { rate(s, 10, 10, 10) }},
		{"no rates", true, nil},
		{"an address", true, func(s *graph.Spec) { rate(s, 10, 10, 40); s.Nodes[1].Addresses[0] = netip.MustParseAddr("172.17.0.1") }},
		{"a locator", true, func(s *graph.Spec) {
			rate(s, 10, 10, 40)
			s.Nodes[1].SIDs.Node = netip.MustParsePrefix("fcbb:bbbb:99::/48")
		}},
	} {
		is, err := heard(t, 3, true, false, c.change)
		if err != nil {
			t.Fatal(err)
		}
		if _, more := was.Within(is); more != c.more {
			t.Errorf("%s: more is %t", c.name, more)
		}
	}
}
