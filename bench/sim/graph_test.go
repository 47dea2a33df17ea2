package sim

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/bench/sim/spray"
	"weft/bench/sim/workload"
	"weft/flowcell"
	"weft/topology"
	"weft/topology/graph"
	"weft/topology/graph/graphtest"
)

// randomGraph is one of graphtest in which all rates are known, nil if it has fewer than two
// hosts.
func randomGraph(t *testing.T, seed uint64) *graph.Graph {
	t.Helper()
	spec := graphtest.Random(seed)
	for i := range spec.Links {
		if spec.Links[i].Rate == 0 {
			spec.Links[i].Rate = 100
		}
	}
	g, err := graph.New(spec)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if g.NumHosts() < 2 {
		return nil
	}
	return g
}

// searched finds by looking at all ways up and down at which switches the shortest ways
// between two hosts bounce, and the edge switches that they begin at.
func searched(g *graph.Graph, src, dst graph.NodeID) (list [][2]graph.NodeID) {
	var falls func(n graph.NodeID) bool
	falls = func(n graph.NodeID) bool {
		return n == dst || slices.ContainsFunc(g.Down(n), func(p graph.Port) bool { return falls(p.Peer) })
	}
	tier := graph.MaxTier + 1
	var climb func(edge, n graph.NodeID)
	climb = func(edge, n graph.NodeID) {
		if falls(n) {
			if at := g.Node(n).Tier; at < tier {
				tier, list = at, nil
			}
			if w := [2]graph.NodeID{edge, n}; g.Node(n).Tier == tier && !slices.Contains(list, w) {
				list = append(list, w)
			}
		}
		for _, p := range g.Up(n) {
			climb(edge, p.Peer)
		}
	}
	for _, p := range g.Up(src) {
		climb(p.Peer, p.Peer)
	}
	return list
}

func graphSetting(g *graph.Graph, policy string) Config {
	return Config{Graph: g, Seed: 1, Policy: policy, Duration: time.Minute, Delay: time.Microsecond, Queues: []Queue{{Bytes: 16 << 20}}}
}

// The paths that a host sends by are those that a search of all ways finds, and of each
// round of a pair's packets every path has as many as it weighs.
func TestGraph_pathsMatchASearchAndAreFair(t *testing.T) {
	pairs := 0
	for seed := range uint64(200) {
		g := randomGraph(t, seed)
		if g == nil {
			continue
		}
		c := graphSetting(g, "drb")
		c.Workload = new(list)
		s, err := newSimulation(c)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for src := range int32(g.NumHosts()) {
			for dst := range int32(g.NumHosts()) {
				if src == dst {
					continue
				}
				want := searched(g, graph.NodeID(src), graph.NodeID(dst))
				if joins := s.graph.joins(src, dst); joins != (len(want) > 0) {
					t.Fatalf("seed %d: %d to %d: joined %v, and a search finds %v", seed, src, dst, joins, want)
				}
				if len(want) == 0 || s.graph.pair(src, dst).Direct {
					continue
				}
				pairs++
				set := s.graph.pathsOfHosts()(topology.NodeID(src), topology.NodeID(dst))
				weights, sum := make(map[[2]graph.NodeID]int), 0
				for _, n := range set.Weighted() {
					p := s.graph.pair(src, dst).List[n]
					if addr := g.Node(p.Bounce).Addresses; !slices.Contains(addr, set.Addr(n)) {
						t.Fatalf("seed %d: %d to %d: path %d bounces at %v, in the view at %v", seed, src, dst, n, addr, set.Addr(n))
					}
					weights[[2]graph.NodeID{p.Edge(), p.Bounce}]++
					sum++
				}
				var f spray.Flow
				s.hosts.Open(&f, topology.NodeID(src), topology.NodeID(dst), &flowcell.FiveTuple{SrcPort: 1})
				const rounds = 3
				got := make(map[[2]graph.NodeID]int)
				for range rounds * sum {
					n, _ := s.hosts.Data(&f, 0, 1000, 1040, 0)
					var p packet
					s.lead(&p, src, dst, n, new(uint64))
					low, edge := g.Ends(graph.LinkID(p.route[firstPort] >> 1))
					if low != graph.NodeID(src) {
						t.Fatalf("seed %d: host %d begins at %d's link", seed, src, low)
					}
					got[[2]graph.NodeID{edge, graph.NodeID(p.route[bouncing])}]++
				}
				for _, w := range want {
					if got[w] != rounds*weights[w] || got[w] == 0 {
						t.Fatalf("seed %d: %d to %d: %d packets of %d by %v, want %d", seed, src, dst, got[w], rounds*sum, w, rounds*weights[w])
					}
				}
				if len(got) != len(want) {
					t.Fatalf("seed %d: %d to %d: by %v, want %v", seed, src, dst, got, want)
				}
			}
		}
	}
	if pairs < 1500 {
		t.Errorf("only %d pairs looked at", pairs)
	}
}

// Every packet arrives, whatever the fabric and the policy.
func TestGraph_allArrives(t *testing.T) {
	policies := []string{"drb", "ecmp", "presto", "rb"}
	flows := 0
	for seed := range uint64(200) {
		g := randomGraph(t, seed)
		if g == nil {
			continue
		}
		c := graphSetting(g, policies[seed%4])
		w := new(list)
		want := make([]int64, g.NumHosts())
		for src := range g.NumHosts() {
			for dst := range g.NumHosts() {
				if src != dst && len(searched(g, graph.NodeID(src), graph.NodeID(dst))) > 0 {
					w.flows = append(w.flows, workload.Flow{Src: topology.NodeID(src), Dst: topology.NodeID(dst), Bytes: 20_000})
					want[dst] += 20_000
				}
			}
		}
		n := len(w.flows)
		flows += n
		c.Workload = w
		r := run(t, c)
		if len(w.done) != n || !slices.Equal(r.DeliveredBytes, want) {
			t.Fatalf("seed %d: %d of %d flows ended, %v bytes, want %v", seed, len(w.done), n, r.DeliveredBytes, want)
		}
		for i, p := range r.Ports {
			if p.Drops > 0 {
				t.Fatalf("seed %d: port %d drops %d", seed, i, p.Drops)
			}
		}
	}
	if flows < 3000 {
		t.Errorf("only %d flows", flows)
	}
}

// asGraph is a computed fabric as data.
func asGraph(t *testing.T, top *topology.Topology) *graph.Graph {
	t.Helper()
	var spec graph.Spec
	tiers := map[topology.Layer]int{topology.LayerHost: 0, topology.LayerEdge: 1, topology.LayerAgg: 2, topology.LayerCore: 3}
	for n := range top.Nodes() {
		spec.Nodes = append(spec.Nodes, graph.Node{Name: n.Name, Tier: tiers[n.Layer], Addresses: []netip.Addr{n.Addr}})
	}
	for l := range top.Links() {
		spec.Links = append(spec.Links, graph.Link{Ends: [2]string{top.Node(l.A).Name, top.Node(l.B).Name}, Rate: top.Rate(l.ID)})
	}
	g, err := graph.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	if g, err = graph.Parse(g.Text()); err != nil {
		t.Fatal(err)
	}
	return g
}

// A computed fabric that is written out as data gives the same results.
func TestGraph_ofAComputedKind(t *testing.T) {
	for _, form := range []string{"fat-tree:k=4", "fat-tree:k=6", "leaf-spine:leaves=4,spines=3,hosts=2"} {
		top := parse(t, form+",host-rate=1000,fabric-rate=1000")
		if strings.HasPrefix(form, "fat") {
			top = parse(t, form+",host-rate=1000,fabric-rate=1000,core-rate=1000")
		}
		g := asGraph(t, top)
		for _, name := range []string{"drb", "presto", "ecmp", "letflow", "rrb"} {
			c := drbSetting(top, name)
			c.Workload = permutation(top, 3, 0)
			want := run(t, c)
			c.Topology, c.Graph = nil, g
			c.Workload = permutation(top, 3, 0)
			got := run(t, c)
			if want.DataPackets == 0 || !reflect.DeepEqual(got, want) {
				t.Errorf("%s, %s: %d packets, %d hops, want %d and %d", form, name, got.DataPackets, got.PacketHops, want.DataPackets, want.PacketHops)
			}
		}
	}
}

func TestGraph_errors(t *testing.T) {
	g := asGraph(t, parse(t, "fat-tree:k=4,host-rate=10,fabric-rate=10,core-rate=10"))
	for want, change := range map[string]func(*Config){
		"both given":   func(c *Config) { c.Topology = parse(t, "fat-tree:k=4") },
		"Known is":     func(c *Config) { c.Known = parse(t, "fat-tree:k=4") },
		"Failures are": func(c *Config) { c.Failures = make([]Failure, 1) },
		"switch-ecmp":  func(c *Config) { c.Policy = "switch-ecmp" },
		"luopan":       func(c *Config) { c.Policy = "luopan" },
		"OpenLoop.To":  func(c *Config) { c.OpenLoop = &OpenLoop{Load: 0.5, PacketBytes: 1500} },
		"has no rate":  func(c *Config) { c.Graph = asGraph(t, parse(t, "fat-tree:k=4")) },
	} {
		c := graphSetting(g, "drb")
		c.Workload = new(list)
		change(&c)
		if _, err := Run(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
