package topology

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"
)

// literal is DRILL's Quiver as §3.4.1 and §3.4.3 have it: every link of every
// shortest path between two racks is labelled with the racks and with the
// path's capacity factor there. Spines of VL2 are split.
type literal struct {
	g      neighbours
	rates  map[[2]NodeID]float64 // of live links, both ways
	whole  map[NodeID]ways       // distances with nothing down, from racks
	labels map[[2]NodeID]map[string]bool
}

func quiverOf(top *Topology) literal {
	q := literal{g: extended(top), rates: map[[2]NodeID]float64{}, whole: map[NodeID]ways{}, labels: map[[2]NodeID]map[string]bool{}}
	for l := range top.Links() {
		if !top.Live(l.ID) || top.Node(l.A).Layer == LayerHost {
			continue
		}
		for _, b := range q.g.near[l.A] {
			if q.g.of[b] == l.B {
				q.rates[[2]NodeID{l.A, b}] = top.Rate(l.ID)
				q.rates[[2]NodeID{b, l.A}] = top.Rate(l.ID)
			}
		}
	}
	var racks []NodeID
	for n := range top.Nodes() {
		if n.Layer == LayerEdge {
			racks = append(racks, n.ID)
			q.whole[n.ID] = q.g.breadthFirst(n.ID)
		}
	}
	for _, src := range racks {
		for _, dst := range racks {
			if src == dst {
				continue
			}
			for _, p := range q.shortest(src, dst) {
				slowest := math.Inf(1) // from the source so far
				for i := range p[1:] {
					edge := [2]NodeID{p[i], p[i+1]}
					cf := slowest
					if i > 0 {
						cf = 0 // nothing queues at a link of unknown rate
						if q.rates[edge] != 0 {
							cf = slowest / q.rates[edge]
							if math.IsInf(slowest, 1) {
								cf = 0 // of unknown rate on the way here
							}
						}
					}
					if q.labels[edge] == nil {
						q.labels[edge] = map[string]bool{}
					}
					q.labels[edge][fmt.Sprint(src, dst, cf)] = true
					if r := q.rates[edge]; r != 0 {
						slowest = min(slowest, r)
					}
				}
			}
		}
	}
	return q
}

// shortest returns the live paths between two racks that are as short as with
// nothing down: longer ones no packet takes.
func (q literal) shortest(src, dst NodeID) (paths [][]NodeID) {
	w := q.whole[src]
	var back func(at NodeID, tail []NodeID)
	back = func(at NodeID, tail []NodeID) {
		tail = append([]NodeID{at}, tail...)
		if at == src {
			paths = append(paths, tail)
			return
		}
		for _, from := range q.g.near[at] {
			if _, live := q.rates[[2]NodeID{from, at}]; live && w.dist[from] == w.dist[at]-1 {
				back(from, tail)
			}
		}
	}
	back(dst, nil)
	return paths
}

// groups is the oracle: paths with the same lists of label sets. It also
// returns each group's aggregate capacity.
func (q literal) groups(t *testing.T, src, dst NodeID) (groups [][]int, capacity []float64) {
	t.Helper()
	set := q.g.top.Paths(src, dst)
	if set.Direct() {
		return nil, nil
	}
	racks := [2]NodeID{q.g.top.Ports(src)[0].Peer, q.g.top.Ports(dst)[0].Peer}
	byScore := map[string]int{}
	shortest := q.shortest(racks[0], racks[1])
	if len(shortest) != len(set.Live) {
		t.Fatalf("%v: %d shortest paths, %d live ones", q.g.top, len(shortest), len(set.Live))
	}
	byBounce := map[NodeID][]NodeID{}
	for _, p := range shortest {
		byBounce[p[len(p)/2]] = p
	}
	for _, n := range set.Live {
		p := byBounce[q.g.bounce(t, set, n)]
		var score strings.Builder
		slowest := math.Inf(1)
		for i := range p[1:] {
			edge := [2]NodeID{p[i], p[i+1]}
			var labels []string
			for l := range q.labels[edge] {
				labels = append(labels, l)
			}
			sort.Strings(labels)
			fmt.Fprintln(&score, labels)
			if r := q.rates[edge]; r != 0 {
				slowest = min(slowest, r)
			}
		}
		if math.IsInf(slowest, 1) {
			slowest = 1
		}
		at, ok := byScore[score.String()]
		if !ok {
			at = len(groups)
			byScore[score.String()] = at
			groups, capacity = append(groups, nil), append(capacity, 0)
		}
		groups[at] = append(groups[at], n)
		capacity[at] += slowest
	}
	return groups, capacity
}

func TestGroups_matchTheLiteralQuiver(t *testing.T) {
	const seed = 37
	rng := rand.New(rand.NewPCG(seed, 0))
	several := 0
	for _, spec := range smallSpecs {
		for round := range 10 {
			whole := mustParse(t, spec)
			if round%3 != 0 {
				whole = mustParse(t, spec+randomRates(whole, rng, round%3 == 1))
			}
			top := whole
			for range rng.IntN(1 + round) {
				top = top.Without(LinkID(top.numHosts() + rng.IntN(top.NumLinks()-top.numHosts())))
			}
			oracle := quiverOf(top)
			quiver := top.Quiver()
			for _, pair := range rackPairs(top) {
				got := quiver.Groups(pair[0], pair[1])
				want, capacity := oracle.groups(t, pair[0], pair[1])
				several += max(0, len(want)-1)
				ok := len(got) == len(want)
				for i := range want {
					ok = ok && slices.Equal(got[i].Paths, want[i]) &&
						float64(got[i].Weight)*capacity[0] == float64(got[0].Weight)*capacity[i]
				}
				if !ok {
					t.Fatalf("seed %d: %v without %v: %v has groups %+v, want %v of capacities %v", seed, top, top.Down(), pair, got, want, capacity)
				}
				if again := top.Groups(pair[0], pair[1]); fmt.Sprint(again) != fmt.Sprint(got) {
					t.Fatalf("%v: %v has groups %v, by the Quiver %v", top, pair, again, got)
				}
			}
		}
	}
	if several < 1000 {
		t.Errorf("only %d groups besides the first: the test tests nothing", several)
	}
}

// randomRates gives some links a rate of their own; both kinds of links
// between switches, or one, have a rate at all.
func randomRates(top *Topology, rng *rand.Rand, both bool) (spec string) {
	spec = ",fabric-rate=20"
	both = both && top.cores > 0
	if both {
		spec += ",core-rate=40"
	}
	for i := top.numHosts(); i < top.NumLinks(); i++ {
		l := LinkID(i)
		if rng.IntN(8) == 0 && (both || top.rateLayer(l) == 1) {
			spec += fmt.Sprintf(",%s=%d", top.LinkName(l), 10<<rng.IntN(3))
		}
	}
	return spec
}

// rackPairs are the first hosts of all pairs of racks, themselves included.
func rackPairs(top *Topology) (pairs [][2]NodeID) {
	for a := 0; a < top.numHosts(); a += top.hosts {
		for b := 0; b < top.numHosts(); b += top.hosts {
			pairs = append(pairs, [2]NodeID{NodeID(a), NodeID(b)})
		}
	}
	return pairs
}

func TestGroups_ofThePapers(t *testing.T) {
	for _, c := range []struct {
		what, spec, down string
		src, dst         NodeID
		want             string
	}{
		{"DRILL Fig. 4: L3 to L1 while L0-S0 is down", "leaf-spine:leaves=4,spines=3,hosts=1", "e0.0-a0.0", 3, 1,
			"[0] weighs 1, [1 2] weighs 2"},
		{"DRILL Fig. 4: L0 itself", "leaf-spine:leaves=4,spines=3,hosts=1", "e0.0-a0.0", 0, 1, "[1 2] weighs 1"},
		{"DRILL Fig. 5: R5 to R1 while R0-F0 is down", "fat-tree:k=4,hosts=1", "e0.0-a0.2", 5, 1,
			"[0 1] weighs 1, [2 3] weighs 1"},
		{"DRILL Fig. 5: R5 to R0", "fat-tree:k=4,hosts=1", "e0.0-a0.2", 5, 0, "[2 3] weighs 1"},
		{"a host's link changes nothing", "fat-tree:k=4,hosts=1", "h0.0.2-e0.0", 5, 1, "[0 1 2 3] weighs 1"},
		// §3.4.3: H0 and H2 are symmetric, H1 is not, if no other rack sends.
		{"DRILL §3.4.3, two leaves", "leaf-spine:leaves=2,spines=3,hosts=1,fabric-rate=10,e0.0-a0.0=40,e0.0-a0.1=40,e0.1-a0.0=40", "", 0, 1,
			"[0 2] weighs 5, [1] weighs 1"},
		// With the other leaves of Fig. 4(a), which the example leaves out, their
		// traffic queues at S2-L1 (10 over 10) but not at S0-L1 (10 over 40):
		// by the definition, which counts their labels, H0 is on its own.
		{"DRILL §3.4.3, four leaves", "leaf-spine:leaves=4,spines=3,hosts=1,fabric-rate=10,e0.0-a0.0=40,e0.0-a0.1=40,e0.1-a0.0=40", "", 0, 1,
			"[0] weighs 4, [1] weighs 1, [2] weighs 1"},
		// One core is faster than what comes from the racks: those beside it do
		// not differ for that.
		{"a fast core", "fat-tree:k=4,hosts=1,fabric-rate=10,core-rate=20,a0.2-3.1=40,a1.2-3.1=40,a2.2-3.1=40,a3.2-3.1=40", "", 5, 1,
			"[0 2 3] weighs 3, [1] weighs 1"},
		{"direct", "fat-tree:k=4", "e0.0-a0.2", 0, 1, ""},
		{"nothing down", "vl2:d0=2,d1=4,d2=4,hosts=1", "", 0, 3, "[0 1 2 3] weighs 1"},
	} {
		top := mustParse(t, c.spec)
		if c.down != "" {
			l, err := top.LinkByName(c.down)
			if err != nil {
				t.Fatal(err)
			}
			top = top.Without(l.ID)
		}
		var got []string
		for _, g := range top.Groups(c.src, c.dst) {
			got = append(got, fmt.Sprintf("%v weighs %d", g.Paths, g.Weight))
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%s: %s, want %s", c.what, s, c.want)
		}
	}
}

// Weights inside a group are those of the set, in lowest terms again.
func TestGroups_weightsWithin(t *testing.T) {
	top := mustParse(t, "leaf-spine:leaves=2,spines=4,hosts=1,fabric-rate=10,e0.0-a0.0=40,e0.0-a0.1=40,e0.1-a0.0=40")
	groups := top.Groups(0, 1)
	if len(groups) != 2 || !slices.Equal(groups[0].Weights, []int{4, 1, 1}) || groups[1].Weights != nil {
		t.Fatalf("%+v", groups)
	}
	if got := groups[0].Weighted(); !slices.Equal(got, []int{0, 0, 0, 0, 2, 3}) {
		t.Errorf("%v", got)
	}
	if got := groups[1].Weighted(); !slices.Equal(got, []int{1}) {
		t.Errorf("%v", got)
	}
}

func BenchmarkQuiver(b *testing.B) {
	down := mustFatTree(b, 48)
	down = down.Without(down.edgeLink(0, 0, 3), down.coreLink(40, 5, 7))
	uneven := mustParse(b, "fat-tree:k=48,fabric-rate=10000,core-rate=10000,e0.0-a0.24=40000,a3.24-c1.1=5000")
	for _, c := range []struct {
		name string
		top  *Topology
	}{{"links down", down}, {"uneven", uneven}} {
		b.Run(c.name+"/make", func(b *testing.B) {
			for b.Loop() {
				c.top.Quiver()
			}
		})
		b.Run(c.name+"/pair", func(b *testing.B) {
			q := c.top.Quiver()
			for b.Loop() {
				q.Groups(30, 9000)
			}
		})
	}
}
