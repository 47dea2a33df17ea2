package bgp

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"weft/topology/graph"
	"weft/topology/graph/graphtest"
)

// What a switch says changes nothing of what others have.
func TestSpec_lies(t *testing.T) {
	for _, c := range []struct {
		name, first, lie string // what is heard before the first Spec, and after it
		want, guess      string
	}{
		{"another's rack", prototype, "192.168.2.0/24 3 65101 65001 65103\n192.168.2.0/24 4 65101 65002 65103",
			"as65102: {tier: 1, prefixes: [192.168.2.0/24]", "192.168.2.0/24 is announced by AS 65102 and AS 65103"},
		{"more specifics of it", prototype, "192.168.2.0/25 1 65101 65001 65103\n192.168.2.128/25 1 65101 65002 65103",
			"as65102: {tier: 1, prefixes: [192.168.2.0/24]", "192.168.2.0/25 of AS 65103 lies within 192.168.2.0/24 of AS 65102"},
		{"a wider one", prototype, "192.168.2.0/23 1 65101 65001 65103\n192.168.2.0/23 2 65101 65002 65103",
			"as65102: {tier: 1, prefixes: [192.168.2.0/24]", "192.168.2.0/23 of AS 65103 holds what was there before, or is of others, such as 192.168.2.0/24 of AS 65102"},
		{"an aggregate from the beginning", prototype + "192.168.3.0/24 1 65101 65001 65104\n192.168.3.0/24 2 65101 65002 65104\n192.168.2.0/23 1 65101 65001 65103", "",
			"as65102: {tier: 1, prefixes: [192.168.2.0/24]", "192.168.2.0/23 of AS 65103 holds"},
		{"what holds the host's own", prototype, "192.168.0.0/16 1 65101 65001 65103", "as65102: {tier: 1, prefixes: [192.168.2.0/24]", "192.168.0.0/16 of AS 65103 has this host's own address"},
		{"an address in another's rack", prototype, "192.168.2.7/32 1 65101 65001", "as65001: {tier: 2, addresses: [172.16.0.1],", "192.168.2.7/32 of AS 65001 lies within 192.168.2.0/24 of AS 65102"},
		{"the host's own prefix", prototype, "192.168.1.0/24 9 65101 65001", "as65101: {tier: 1, prefixes: [192.168.1.0/24]", "192.168.1.0/24 of AS 65001 has this host's own address"},
		{"the host's own address", prototype, "192.168.1.2/32 9 65101 65001", "as65001: {tier: 2, addresses: [172.16.0.1],", "192.168.1.2/32 of AS 65001 has this host's own address"},
		{"an address of another", prototype, "172.15.0.1/32 1 65101 65001 65002", "as65002: {tier: 2, addresses: [172.16.0.2, 172.15.0.1]", ""},
		{"another's address", prototype, "172.16.0.2/32 7 65101 65001", "as65002: {tier: 2, addresses: [172.16.0.2],", "172.16.0.2/32 is announced by AS 65002 and AS 65001"},
		{"a rack that passes on", prototype, "10.9.0.0/24 1 65101 65001 65102 70000", "as65102: {tier: 1, prefixes: [192.168.2.0/24]", ""},
		{"what has no address", prototype, "10.9.0.0/24 1 65101 65001 70001 70002 70003\n172.9.0.1/32 1 65101 65001 70001 70002", "as65102: {tier: 1", "AS 70001 announces no address"},
		{"a locator", prototype + "fcbb:bbbb:1::/48 1 65101 65001", "fcbb:bbbb:1::/48 7 65101 65002\nfcbb:bbbb:9::/48 1 65101 65002 65001",
			`as65001: {tier: 2, addresses: [172.16.0.1], as: 65001, sids: {node: "fcbb:bbbb:1::/48"}}`, "AS 65001 announces several locators; fcbb:bbbb:9::/48"},
	} {
		tab := NewTable(Config{Neighbors: map[netip.Addr]uint32{leaf: 65101}, SIDBlock: netip.MustParsePrefix("fcbb:bbbb::/32")})
		say := func(lines string) {
			for line := range strings.SplitSeq(strings.Trim(lines, "\n"), "\n") {
				if line != "" {
					tab.Set(routeOf(t, line))
				}
			}
		}
		say(c.first)
		text(t, tab)
		say(c.lie)
		got, guesses := text(t, tab)
		if !strings.Contains(got, c.want) || !strings.Contains(guesses, c.guess) {
			t.Errorf("%s: no %q in\n%s or no %q in\n%s", c.name, c.want, got, c.guess, guesses)
		}
	}
}

// A next hop is the neighbour, or on a link of the host.
func TestSpec_nextHops(t *testing.T) {
	tab := newTable()
	host := self
	host.OnLink = []netip.Prefix{netip.MustParsePrefix("192.168.1.0/24")}
	for i, hop := range []string{"192.168.1.1", "192.168.1.200", "::ffff:192.168.1.1", "fe80::1", "2001:db8::1", "10.0.0.1", "192.168.1.2"} {
		tab.Set(Key{leaf, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i), 0}), 24), 1}, Route{ASPath: []uint32{65101}, NextHop: netip.MustParseAddr(hop)})
	}
	s, guesses := tab.Spec(host)
	if n := len(s.Nodes[1].Prefixes); n != 5 || len(guesses) != 2 || !strings.Contains(guesses[0], "next hop 10.0.0.1") || !strings.Contains(guesses[1], "192.168.1.2") {
		t.Errorf("%d racks\n%s", n, strings.Join(guesses, "\n"))
	}
}

// The rate of a link is what most of the shortest paths say.
func TestSpec_rates(t *testing.T) {
	tab := newTable()
	for _, c := range []struct {
		line string
		rate float64
	}{
		{"172.16.0.1/32 1 65101 65001", 10000}, {"172.16.0.2/32 1 65101 65002", 2500},
		{"192.168.2.0/24 1 65101 65001 65102", 10000}, {"192.168.2.0/24 2 65101 65002 65102", 0},
		{"192.168.3.0/24 1 65101 65002 65001 65102", 1}, // from farther away
	} {
		k, r := routeOf(t, c.line)
		r.Rate = c.rate
		tab.Set(k, r)
	}
	got, guesses := text(t, tab)
	for _, want := range []string{"[as65101, as65001], rate: 10000}", "[as65101, as65002], rate: 2500}", "[as65102, as65001], rate: 10000}", "[as65102, as65002], rate: 10000}"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if !strings.Contains(guesses, "no rate of the link between AS 65002 and AS 65102") {
		t.Error(guesses)
	}
}

// What is made of the routes is bounded, whoever says what.
func TestSpec_isBounded(t *testing.T) {
	tab := table(t, prototype)
	text(t, tab)
	for i := range uint32(20_000) {
		net := netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0})
		tab.Set(Key{leaf, netip.PrefixFrom(net, 24), 1}, Route{ASPath: []uint32{65101, 65001, 65103}})
		tab.Set(Key{leaf, netip.PrefixFrom(net.Next(), 32), 1}, Route{ASPath: []uint32{65101, 65001, 70000 + i}})
		tab.Set(Key{leaf, netip.PrefixFrom(net, 25), 1}, Route{ASPath: []uint32{65101, 65001, 70000 + i, 200_000 + i}})
	}
	s, guesses := tab.Spec(self)
	racks := 0
	for _, n := range s.Nodes {
		racks += len(n.Prefixes)
	}
	if len(s.Nodes) > maxSwitches+1 || len(s.Links) > maxLinks || racks > maxRacks || len(guesses) > maxGuesses+1 {
		t.Errorf("%d nodes, %d links, %d racks, %d guesses", len(s.Nodes), len(s.Links), racks, len(guesses))
	}
	g, err := graph.New(s)
	if err != nil {
		t.Fatal(err)
	}
	at, ok := g.Behind(netip.MustParseAddr("192.168.2.9"))
	if !ok || g.Node(at).Name != "as65102" || len(bounces(g, 0, at)) < 2 {
		t.Errorf("the rack of before is gone: %v", g.Node(at))
	}
	if got := strings.Join(guesses, "\n"); !strings.Contains(got, " of AS 65103; it is left out") || !strings.Contains(got, "more of that kind") {
		t.Error(guesses)
	}
}

// A switch that says whatever it likes about what is behind it, and withdraws what it
// likes, takes no path that does not lead through it: not its bouncing switch, and not
// where packets bounce.
func TestSpec_aLiarTakesOnlyItsOwnPaths(t *testing.T) {
	checked := 0
	for seed := range uint64(200) {
		g, err := graph.New(graphtest.Random(seed))
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(seed, 6))
		first, end := g.Tier(1)
		own := first + graph.NodeID(r.IntN(int(end-first)))
		liar := first + graph.NodeID(r.IntN(g.NumNodes()-int(first)))
		if liar == own {
			continue
		}
		tab := NewTable(Config{Neighbors: map[netip.Addr]uint32{leaf: g.Node(own).AS}})
		hear(g, own, tab)
		host := Host{Name: "h1", Addresses: []netip.Addr{netip.MustParseAddr("1.2.3.4")}}
		tab.Spec(host)
		for round := range 3 {
			lie(g, liar, tab, r)
			spec, guesses := tab.Spec(host)
			h, err := graph.New(spec)
			if err != nil {
				t.Fatalf("seed %d: %v\n%v", seed, err, guesses)
			}
			down := func(l graph.LinkID) bool {
				low, high := g.Ends(l)
				return low == liar || high == liar
			}
			for dst := first; dst < end; dst++ {
				if dst == liar || dst == own {
					continue
				}
				p := g.Paths(own, dst)
				live, _ := p.Live(down)
				var got []netip.Addr
				low, high := h.Tier(1)
				for at := low; at < high; at++ { // the liar may be taken for another leaf of the rack
					if n := h.Node(at); n.AS == g.Node(dst).AS && slices.Contains(n.Prefixes, g.Node(dst).Prefixes[0]) {
						got = bounces(h, 0, at)
					}
				}
				for _, n := range live {
					checked++
					bounce := g.Node(p.List[n].Bounce)
					if !slices.Contains(got, bounce.Addresses[0]) {
						t.Fatalf("seed %d, round %d: AS %d takes the path of %s by %s, %v; left are %v\n%s\n%s\nof\n%s", seed, round, g.Node(liar).AS, g.Node(dst).Name, bounce.Name, bounce.Addresses[0], got, strings.Join(guesses, "\n"), h.Text(), g.Text())
					}
				}
			}
		}
	}
	if checked < 500 {
		t.Errorf("%d paths: too few to show anything", checked)
	}
}

// lie has a switch change what a Table has of it: it withdraws, and adds what it invents to
// the paths that lead to it.
func lie(g *graph.Graph, self graph.NodeID, tab *Table, r *rand.Rand) {
	liar := g.Node(self).AS
	var to [][]uint32 // ways to the liar
	var prefixes []netip.Prefix
	for p, list := range tab.prefixes {
		prefixes = append(prefixes, p)
		for _, route := range list {
			if i := slices.Index(route.path.list, liar); i >= 0 {
				to = append(to, route.path.list[:i+1])
			}
		}
	}
	slices.SortFunc(prefixes, comparePrefixes)
	slices.SortFunc(to, slices.Compare[[]uint32])
	to = slices.CompactFunc(to, slices.Equal[[]uint32])
	for _, p := range prefixes {
		for i := len(tab.prefixes[p]) - 1; i >= 0; i-- {
			if slices.Contains(tab.prefixes[p][i].path.list, liar) && r.IntN(3) == 0 {
				tab.remove(p, i)
			}
		}
	}
	if len(to) == 0 {
		return
	}
	for i := range 400 {
		path := slices.Clone(to[r.IntN(len(to))])
		for n := range r.IntN(4) {
			if n == 0 && r.IntN(4) > 0 { // it is believed to whom it is wired
				ports := slices.Concat(g.Up(self), g.Down(self))
				if as := g.Node(ports[r.IntN(len(ports))].Peer).AS; as != 0 {
					path = append(path, as)
				}
				continue
			}
			as := g.Node(graph.NodeID(g.NumHosts() + r.IntN(g.NumNodes()-g.NumHosts()))).AS
			if n == 0 || r.IntN(4) == 0 {
				as = uint32(900_000 + r.IntN(50))
			}
			path = append(path, as)
		}
		p := prefixes[r.IntN(len(prefixes))]
		if r.IntN(2) == 0 {
			p, _ = p.Addr().Prefix(1 + r.IntN(p.Addr().BitLen()))
		}
		tab.Set(Key{leaf, p, uint32(1_000_000 + i)}, Route{ASPath: path, Rate: r.Float64() * 1000})
	}
}
