package topology

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestRoutes_weights(t *testing.T) {
	const fig4 = "leaf-spine:leaves=4,spines=3,hosts=2,fabric-rate="
	for _, c := range []struct {
		spec, down, node, to string
		want                 string // ports, and behind a colon their weights unless they are equal
	}{
		{"fat-tree:k=4", "", "e0.0", "10.3.0.0", "[2 3]"},
		// DRILL §3.4, Fig. 4(a): the static capacities of P0, P1 and P2 are 40 Gbit/s each, so
		// WCMP weighs them alike. What is left of L0's ways goes round the dead link.
		{fig4 + "40", "e0.0-a0.0", "e0.3", "10.0.1.2", "[2 3 4]"},
		{fig4 + "40", "e0.0-a0.0", "e0.0", "10.0.1.2", "[3 4]"},
		// DRILL §3.4.3: L0-S0, L0-S1 and L1-S0 have 40 Gbit/s, the others 10.
		{fig4 + "10,e0.0-a0.0=40,e0.0-a0.1=40,e0.1-a0.0=40", "", "e0.0", "10.0.1.2", "[2 3 4]:[4 1 1]"},
		{fig4 + "10,e0.0-a0.0=40,e0.0-a0.1=40,e0.1-a0.0=40", "", "e0.0", "10.0.2.2", "[2 3 4]"},
		{fig4 + "10,e0.0-a0.0=40,e0.0-a0.1=40,e0.1-a0.0=40", "", "e0.0", "192.0.2.1", "[2 3 4]"},
		{fig4 + "10,e0.0-a0.0=40,e0.0-a0.1=40,e0.1-a0.0=40", "", "e0.2", "10.0.1.2", "[2 3 4]"},
		// One link at half the rate counts at both of its ends.
		{fig4 + "20,e0.0-a0.1=10", "", "e0.0", "10.0.1.2", "[2 3 4]:[2 1 2]"},
		{fig4 + "20,e0.0-a0.1=10", "", "e0.1", "10.0.0.2", "[2 3 4]:[2 1 2]"},
		{fig4 + "20,e0.0-a0.1=10", "", "e0.1", "10.0.2.2", "[2 3 4]"},
		// An aggregation switch without one of its two cores carries half as much to and
		// from the racks of its pod, but as much between them.
		{"fat-tree:k=4", "a0.2-c1.1", "e0.0", "10.3.0.2", "[2 3]:[1 2]"},
		{"fat-tree:k=4", "a0.2-c1.1", "e0.0", "10.0.1.2", "[2 3]"},
		{"fat-tree:k=4", "a0.2-c1.1", "e3.0", "10.0.0.2", "[2 3]:[1 2]"},
		{"fat-tree:k=4", "a0.2-c1.1", "e3.0", "10.1.0.2", "[2 3]"},
		// Unless what is left is still more than the racks can send.
		{"fat-tree:k=4,fabric-rate=10,core-rate=40", "a0.2-c1.1", "e0.0", "10.3.0.2", "[2 3]"},
		{"fat-tree:k=4,fabric-rate=10", "a0.2-c1.1", "e0.0", "10.3.0.2", "[2 3]"},
		// A dead link of another rack's leaves more for the others, not less.
		{"fat-tree:k=4", "e0.1-a0.2", "e0.0", "10.3.0.2", "[2 3]"},
		// An aggregation switch weighs its cores by their links to it and to the pod.
		{"fat-tree:k=4,core-rate=10,a0.2-c1.1=5", "", "a0.2", "10.3.0.2", "[2 3]:[1 2]"},
		{"fat-tree:k=4,core-rate=10,a3.2-c1.1=5", "", "a0.2", "10.3.0.2", "[2 3]:[1 2]"},
		{"fat-tree:k=4,core-rate=10,a3.2-c1.1=5", "", "a0.2", "10.1.0.2", "[2 3]"},
		// A spine of VL2 weighs a rack's aggregation switches.
		{"vl2:d0=2,d1=4,d2=4,hosts=1,fabric-rate=10,core-rate=10,e0.0-a0.0=2.5", "", "c1.1", "10.0.0.2", "[0 2]:[1 4]"},
	} {
		top := mustParse(t, c.spec)
		if c.down != "" {
			l, err := top.LinkByName(c.down)
			if err != nil {
				t.Fatal(err)
			}
			top = top.Without(l.ID)
		}
		r, _ := tablesOf(top).match(mustLookup(t, top, c.node), netip.MustParseAddr(c.to), 0)
		got := fmt.Sprint(r.Ports)
		if r.Weights != nil {
			got += ":" + fmt.Sprint(r.Weights)
		}
		if got != c.want {
			t.Errorf("%s without %q: %s has %s for %s, want %s", c.spec, c.down, c.node, got, c.to, c.want)
		}
	}
}

// carries is the oracle of capacities: how much to a rack a switch's port carries, found by
// walking cables.
func (f tables) carries(at NodeID, port int, rack NodeID) float64 {
	top := f.top
	down := func(n NodeID, to NodeID) (sum float64, found bool) {
		for _, p := range f.ports[n] {
			if !p.Up && p.Peer == to && top.Live(p.Link) {
				return top.Rate(p.Link), true
			}
		}
		return 0, false
	}
	count := func(n NodeID, up bool) (live float64) {
		for _, p := range f.ports[n] {
			if p.Up == up && top.Live(p.Link) {
				live++
			}
		}
		return live
	}
	// below is what a core has down to a rack, over each aggregation switch shared by its racks
	// or whole, and the rate between these and the rack.
	below := func(core NodeID, shared bool) (sum, last float64) {
		for _, p := range f.ports[core] {
			if rate, ok := down(p.Peer, rack); ok && top.Live(p.Link) {
				last += rate
				if shared {
					sum += top.Rate(p.Link) / count(p.Peer, false)
				} else {
					sum += top.Rate(p.Link)
				}
			}
		}
		return sum, last
	}
	p := f.ports[at][port]
	first := top.Rate(p.Link)
	switch layer := top.Node(at).Layer; {
	case layer == LayerAgg:
		sum, _ := below(p.Peer, false)
		return min(first, sum)
	case layer == LayerCore:
		last, _ := down(p.Peer, rack)
		return min(first/count(p.Peer, false), last/count(p.Peer, true))
	}
	if last, ok := down(p.Peer, rack); ok {
		return min(first, last)
	}
	var sum, last float64
	for _, q := range f.ports[p.Peer] {
		if q.Up && top.Live(q.Link) {
			s, l := below(q.Peer, true)
			sum, last = sum+min(top.Rate(q.Link)/count(p.Peer, false), s), l
			if l == 0 {
				last = 0
			}
		}
	}
	if top.virtual() == 1 { // the last link is the same from all cores
		last = 0
		for _, q := range f.ports[p.Peer] {
			if q.Up && top.Live(q.Link) {
				_, l := below(q.Peer, true)
				last = max(last, l)
			}
		}
		sum = min(sum, last)
	}
	return min(first, sum)
}

// With any rates, and with whatever is down, each port gets its part of the capacity, within
// half of 1/16 of the largest part, or 1/16 if its own is less than that.
func TestRoutes_weightsAreShares(t *testing.T) {
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, 0))
	weighted := 0
	for _, spec := range []string{"fat-tree:k=4", "fat-tree:k=6", "leaf-spine:leaves=4,spines=3,hosts=2", "vl2:d0=2,d1=4,d2=4,hosts=1", "vl2:d0=3,d1=6,d2=6,hosts=1"} {
		for round := range 8 {
			rates := ",fabric-rate=40"
			if !strings.HasPrefix(spec, "leaf") {
				rates += ",core-rate=50"
			}
			whole := mustParse(t, spec+rates)
			for l := range whole.Links() {
				if int(l.ID) >= whole.numHosts() && rng.IntN(8) < round%4 {
					rates += fmt.Sprintf(",%s=%d", whole.LinkName(l.ID), 1+rng.IntN(100))
				}
			}
			top := mustParse(t, spec+rates)
			for i := top.numHosts(); i < top.NumLinks(); i++ {
				if rng.IntN(30) < round {
					top = top.Without(LinkID(i))
				}
			}
			f := tablesOf(top)
			for sw := NodeID(top.numHosts()); int(sw) < top.NumNodes(); sw++ {
				for h := NodeID(0); int(h) < top.NumHosts(); h += NodeID(top.hosts) {
					r, ok := f.match(sw, top.Node(h).Addr, 0)
					if !ok || len(r.Ports) < 2 {
						if r.Weights != nil {
							t.Fatalf("%v: %s: %+v", top, top.Node(sw).Name, r)
						}
						continue
					}
					weights := r.Weights
					if weights == nil {
						weights = slices.Repeat([]int{1}, len(r.Ports))
					} else {
						weighted++
					}
					var parts []float64
					for _, p := range r.Ports {
						parts = append(parts, f.carries(sw, p, top.EdgeOf(h)))
					}
					heaviest, most := slices.Max(weights), slices.Max(parts)
					for i := range parts {
						got, want := float64(weights[i])/float64(heaviest), parts[i]/most
						off := 1.0 / 32
						if want < 1.0/16 {
							off = 1.0 / 16
						}
						if heaviest > maxRouteWeight || weights[i] < 1 || got > want+off+1e-9 || got < want-off-1e-9 {
							t.Fatalf("seed %d, %v without %v: %s to %s: weights %v for parts %v", seed, top, top.Down(), top.Node(sw).Name, top.Node(h).Name, weights, parts)
						}
					}
				}
			}
		}
	}
	if weighted < 1000 {
		t.Errorf("only %d routes have weights", weighted)
	}
}
