package topology

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
)

func groupedTables(top *Topology) (f tables) {
	f.top = top
	for n := range top.Nodes() {
		f.routes, f.ports = append(f.routes, top.GroupedRoutes(n.ID)), append(f.ports, top.Ports(n.ID))
	}
	return f
}

func TestGroupedRoutes_ofThePaper(t *testing.T) {
	const fig4 = "leaf-spine:leaves=4,spines=3,hosts=2,fabric-rate="
	for _, c := range []struct {
		spec, down, node, to string
		want                 string // groups, and weights
	}{
		// §3.4.1, Fig. 4(a): L0-S0 is down. From L3 to L1 there are {P0} and {P1, P2}.
		{fig4 + "40", "e0.0-a0.0", "e0.3", "10.0.1.2", "[0 1 1] []"},
		{fig4 + "40", "e0.0-a0.0", "e0.0", "10.0.1.2", "[] []"},
		{fig4 + "40", "", "e0.3", "10.0.1.2", "[] []"},
		// A host's link leaves all symmetric.
		{fig4 + "40", "h0.0.2-e0.0", "e0.3", "10.0.1.2", "[] []"},
		// §3.4.3: H0 ~ H2, but not H1, if no other rack sends (TestGroups_ofThePapers).
		{"leaf-spine:leaves=2,spines=3,hosts=2,fabric-rate=10,e0.0-a0.0=40,e0.0-a0.1=40,e0.1-a0.0=40", "", "e0.0", "10.0.1.2", "[0 1 0] [4 1 1]"},
		{fig4 + "10,e0.0-a0.0=40,e0.0-a0.1=40,e0.1-a0.0=40", "", "e0.0", "10.0.1.2", "[0 1 2] [4 1 1]"},
		// Fig. 5: R0-F0 is down. From R5 to R1 the planes differ, from F3 to R1 all is symmetric.
		{"fat-tree:k=4", "e0.0-a0.2", "e1.1", "10.0.1.2", "[0 1] []"},
		{"fat-tree:k=4", "e0.0-a0.2", "a1.3", "10.0.1.2", "[] []"},
		{"fat-tree:k=4", "e0.0-a0.2", "a1.2", "10.0.1.2", "[] []"},
		// A core's link makes its aggregation switches' cores differ.
		{"fat-tree:k=6", "a0.3-c1.1", "a1.3", "10.2.0.2", "[0 1 1] []"},
		{"fat-tree:k=6", "a0.3-c1.1", "a1.4", "10.2.0.2", "[] []"},
	} {
		top := mustParse(t, c.spec)
		if c.down != "" {
			l, err := top.LinkByName(c.down)
			if err != nil {
				t.Fatal(err)
			}
			top = top.Without(l.ID)
		}
		f := groupedTables(top)
		r, _ := f.match(mustLookup(t, top, c.node), netip.MustParseAddr(c.to), 0)
		if got := fmt.Sprint(r.Groups, r.Weights); got != c.want {
			t.Errorf("%s without %q: %s has %s for %s, want %s", c.spec, c.down, c.node, got, c.to, c.want)
		}
	}
}

// With any rates, and with whatever is down, next hops of an edge switch are of one group if
// the components of their paths are the same, and only then. Apart from the groups the way to
// each rack is that of Routes.
func TestGroupedRoutes_areTheComponents(t *testing.T) {
	const seed = 9
	rng := rand.New(rand.NewPCG(seed, 0))
	grouped := 0
	for _, spec := range []string{"fat-tree:k=4", "fat-tree:k=6", "leaf-spine:leaves=4,spines=4,hosts=1", "vl2:d0=2,d1=4,d2=4,hosts=1"} {
		for round := range 6 {
			top := mustParse(t, spec)
			if round%2 == 0 {
				top = mustParse(t, spec+",fabric-rate=40")
				if l := top.LinkName(LinkID(top.numHosts() + rng.IntN(top.numEdges()*top.aggs))); round > 0 {
					top = mustParse(t, spec+",fabric-rate=40,"+l+"=10")
				}
			}
			for range round {
				top = top.Without(LinkID(top.numHosts() + rng.IntN(top.NumLinks()-top.numHosts())))
			}
			plain, f := tablesOf(top), groupedTables(top)
			for src := NodeID(0); int(src) < top.NumHosts(); src += NodeID(top.hosts) {
				for dst := NodeID(0); int(dst) < top.NumHosts(); dst += NodeID(top.hosts) {
					at := top.EdgeOf(src)
					if at == top.EdgeOf(dst) {
						continue
					}
					r, ok := f.match(at, top.Node(dst).Addr, 0)
					was, _ := plain.match(at, top.Node(dst).Addr, 0)
					if !slices.Equal(r.Ports, was.Ports) || !slices.Equal(r.Weights, was.Weights) {
						t.Fatalf("seed %d, %v without %v: %s: %+v, without groups %+v", seed, top, top.Down(), top.Node(at).Name, r, was)
					}
					if !ok || len(r.Ports) < 2 || top.kind == vl2 {
						if r.Groups != nil {
							t.Fatalf("%v: %+v", top, r)
						}
						continue
					}
					set, behind := top.Paths(src, dst), make(map[NodeID][]int)
					for i, g := range top.Groups(src, dst) {
						for _, n := range g.Paths {
							via := set.Path(n).Hops[2]
							behind[via] = append(behind[via], i)
						}
					}
					for i, a := range r.Ports {
						for k, b := range r.Ports {
							same := slices.Equal(behind[f.ports[at][a].Peer], behind[f.ports[at][b].Peer])
							together := r.Groups == nil || r.Groups[i] == r.Groups[k]
							if same != together {
								t.Fatalf("seed %d, %v without %v: %s to %s: %+v, components %v", seed, top, top.Down(), top.Node(at).Name, top.Node(dst).Name, r, behind)
							}
							if !together {
								grouped++
							}
						}
					}
				}
			}
		}
	}
	if grouped < 1000 {
		t.Errorf("only %d pairs of next hops are of different groups", grouped)
	}
}
