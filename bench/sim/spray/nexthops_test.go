package spray

import (
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"weft/topology"
)

// walks returns the paths, as links up, that a switch model may take for a pair:
// those that Up's candidates lead along.
func walks(n *nextHops, p *Packet) map[[2]topology.LinkID]int {
	all := map[[2]topology.LinkID]int{}
	edge := n.shape.edgeOf(p.Src)
	pod := func(h topology.NodeID) int { return n.shape.rack(h) / n.shape.podRack }
	for _, a := range n.of(edge, p) {
		first := n.shape.uplink(edge) + topology.LinkID(a)
		if pod(p.Src) == pod(p.Dst) {
			all[[2]topology.LinkID{first, -1}]++
			continue
		}
		agg := n.topo.Link(first).B
		for _, c := range n.of(agg, p) {
			all[[2]topology.LinkID{first, n.shape.uplink(agg) + topology.LinkID(c)}]++
		}
	}
	return all
}

// paths as topology has them are the oracle.
func upward(topo *topology.Topology, set topology.PathSet, list []int) map[[2]topology.LinkID]int {
	all := map[[2]topology.LinkID]int{}
	for _, n := range list {
		links := set.Path(n).Links
		key := [2]topology.LinkID{links[1], -1}
		if len(links) > 4 {
			key[1] = links[2]
		}
		all[key]++
	}
	return all
}

func TestNextHops_areTheLivePaths(t *testing.T) {
	const seed = 8
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, spec := range []string{leafSpine, fatTree, vl2} {
		whole := parse(t, spec)
		for down := range 7 {
			topo := someDown(whole, rng, down)
			n := newNextHops(topo, switchECMP)
			for range 60 {
				p := &Packet{Src: topology.NodeID(rng.IntN(topo.NumHosts())), Dst: topology.NodeID(rng.IntN(topo.NumHosts()))}
				set := topo.PathsOrAll(p.Src, p.Dst)
				if set.Direct() {
					continue
				}
				if got, want := walks(&n, p), upward(topo, set, set.Live); !maps.Equal(got, want) {
					t.Fatalf("seed %d: %s without %v: from %d to %d %v, want %v", seed, spec, topo.Down(), p.Src, p.Dst, got, want)
				}
			}
		}
	}
}

func TestNextHops_weighByRate(t *testing.T) {
	topo := parse(t, "leaf-spine:leaves=3,spines=3,hosts=2,host-rate=10000,fabric-rate=10000,e0.0-a0.1=20000,e0.1-a0.1=20000")
	for _, name := range []string{switchWCMP, switchDrillAll} {
		n := newNextHops(topo, name)
		for _, c := range []struct {
			src, dst topology.NodeID
			want     string
		}{{0, 2, "map[0:1 1:2 2:1]"}, {0, 4, "map[0:1 1:1 2:1]"}, {4, 0, "map[0:1 1:1 2:1]"}} {
			if got := times(n.of(n.shape.edgeOf(c.src), &Packet{Src: c.src, Dst: c.dst})); got != c.want {
				t.Errorf("%s: from %d to %d: ports %v, want %v", name, c.src, c.dst, got, c.want)
			}
		}
	}
}

// Flows of DRILL keep to one symmetric component, by weight; those of others do not.
func TestNextHops_components(t *testing.T) {
	for spec, link := range map[string]string{leafSpine: "e0.0-a0.0", "fat-tree:k=6,host-rate=1000,fabric-rate=1000,core-rate=1000": "e0.0-a0.3"} {
		topo := without(t, parse(t, spec), link)
		src, dst := topology.NodeID(topo.NumHosts()-1), topology.NodeID(4)
		set := topo.Paths(src, dst)
		groups := topo.Groups(src, dst)
		if len(groups) < 2 {
			t.Fatalf("%s: %v", spec, groups)
		}
		n := newNextHops(topo, switchDrill)
		rng := rand.New(rand.NewPCG(4, 0))
		total, counts := 0, make([]int, len(groups))
		for _, g := range groups {
			total += g.Weight
		}
		const flows = 3000
		for range flows {
			got := walks(&n, &Packet{Src: src, Dst: dst, Hash: rng.Uint64()})
			found := false
			for i, g := range groups {
				if maps.Equal(got, upward(topo, set, g.Paths)) {
					counts[i]++
					found = true
				}
			}
			if !found {
				t.Fatalf("%s: paths %v are none of %v", spec, got, groups)
			}
		}
		for i, g := range groups {
			if want := flows * g.Weight / total; counts[i] < want*8/10 || counts[i] > want*12/10 {
				t.Errorf("%s: component %v has %d flows, want about %d", spec, g, counts[i], want)
			}
		}
	}
}

func TestSpell(t *testing.T) {
	for _, c := range []struct {
		counts []int
		repeat bool
		want   string
	}{
		{[]int{3, 0, 3}, true, "map[0:1 2:1]"},
		{[]int{4, 2, 0, 6}, true, "map[0:2 1:1 3:3]"},
		{[]int{4, 2, 0, 6}, false, "map[0:1 1:1 3:1]"},
		{[]int{0, 0}, true, "map[]"},
	} {
		if got := times(spell(c.counts, c.repeat)); got != c.want {
			t.Errorf("%v: %v, want %v", c.counts, got, c.want)
		}
	}
}

// No model ever chooses a dead link, and all are deterministic.
func TestUp_portsAreLive(t *testing.T) {
	const seed = 6
	for _, spec := range []string{leafSpine, fatTree, vl2} {
		whole := parse(t, spec)
		for _, name := range SwitchNames() {
			rng := rand.New(rand.NewPCG(seed, 0))
			q := queues{}
			c := SwitchConfig{Topology: whole, Name: name, Seed: seed, Engines: 2, FlowcellBytes: 4000}
			s, twin := newSwitch(t, c, q), newSwitch(t, c, q)
			sh := shapeOf(whole)
			for step := range 4000 {
				now := time.Duration(step) * 100 * time.Microsecond
				topo := whole
				if step%500 == 0 {
					topo = someDown(whole, rng, step/1000)
					s.SetTopology(topo)
					twin.SetTopology(topo)
				}
				q[int32(rng.IntN(2*whole.NumLinks()))] = rng.IntN(5) * 1500
				topo = topoOf(s)
				p := Packet{Src: topology.NodeID(rng.IntN(whole.NumHosts())), Dst: topology.NodeID(rng.IntN(whole.NumHosts())), Hash: uint64(rng.IntN(20)), Bytes: 1500}
				set := topo.PathsOrAll(p.Src, p.Dst)
				if set.Direct() {
					continue
				}
				sw, in := sh.edgeOf(p.Src), 2*int32(p.Src)
				live := upward(topo, set, set.Live)
				key := [2]topology.LinkID{-1, -1}
				for hop := range len(set.Bases) {
					port := s.Up(sw, in, &p, now)
					if again := twin.Up(sw, in, &p, now); again != port {
						t.Fatalf("%s, %s: %d and %d", spec, name, port, again)
					}
					key[hop] = sh.uplink(sw) + topology.LinkID(port)
					in, sw = upPort(key[hop]), topo.Link(key[hop]).B
				}
				if live[key] == 0 {
					t.Fatalf("seed %d: %s, %s: %v is not one of %v", seed, spec, name, key, live)
				}
			}
		}
	}
}

// topoOf is what switches know.
func topoOf(s Switch) *topology.Topology {
	switch s := s.(type) {
	case *oblivious:
		return s.topo
	case *localSampling:
		return s.topo
	case *timeless:
		return s.topo
	case *drill:
		return s.topo
	case *drillFlow:
		return s.topo
	case *leaves:
		return s.topo
	}
	return nil
}
