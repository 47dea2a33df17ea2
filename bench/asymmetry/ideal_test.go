package asymmetry

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"weft/topology"
)

func TestIdeal_scenarios(t *testing.T) {
	// In units of a link's rate: all that can go to T3.
	want := map[string]float64{"link-down": 4, "symmetric": 4, "slow-link": 3.25, "slow-link-told": 3.25}
	for _, s := range Scenarios() {
		real, _, err := s.fabric(4, 20)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, r := range ideal(real, streams(real, 2), 20) {
			sum += r
		}
		if math.Abs(sum/20-want[s.Name]) > 1e-6 {
			t.Errorf("%s: %.3f times a link's rate, want %g", s.Name, sum/20, want[s.Name])
		}
	}
}

// In Fig. 1a with one host per rack, whose link carries everything, T1's three links
// do not hold T2 back; with A2 to A4 slow, T1 gets what they carry, and T2 the rest
// of A1.
func TestIdeal_isMaxMin(t *testing.T) {
	topo, err := topology.Parse("leaf-spine:leaves=3,spines=4,hosts=1,host-rate=100,fabric-rate=10,e0.0-a0.1=1,e0.0-a0.2=1,e0.0-a0.3=1")
	if err != nil {
		t.Fatal(err)
	}
	l, _ := topo.LinkByName(linkA1T1)
	got := ideal(topo.Without(l.ID), streams(topo, 1), 0)
	if math.Abs(got[0]-3) > 1e-6 || math.Abs(got[1]-37) > 1e-6 {
		t.Errorf("%.3f, want 3 and 37", got)
	}
}

// No rates are max-min fair unless they are feasible, and raising any stream's, at
// the expense of those that have more, is not. Whether they are is a maximum flow's
// to say.
func TestIdeal_againstMaximumFlow(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		spec := fmt.Sprintf("leaf-spine:leaves=3,spines=4,hosts=2,host-rate=%d,fabric-rate=10", 5+rng.IntN(60))
		for e := range 3 {
			for a := range 4 {
				spec += fmt.Sprintf(",e0.%d-a0.%d=%d", e, a, 1+rng.IntN(30))
			}
		}
		topo, err := topology.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		for range rng.IntN(3) {
			topo = topo.Without(topology.LinkID(topo.NumHosts() + rng.IntN(8)))
		}
		all := streams(topo, 1+rng.IntN(2))
		rates := ideal(topo, all, 0)
		scaled := func(by float64) []float64 {
			r := make([]float64, len(rates))
			for i := range r {
				r[i] = rates[i] * by
			}
			return r
		}
		if !feasible(topo, all, scaled(1-1e-6)) {
			t.Fatalf("seed %d: %.3f is more than %s carries", seed, rates, spec)
		}
		for i := range rates {
			raised := append([]float64(nil), rates...)
			for j := range raised {
				raised[j] = min(raised[j], rates[i])
			}
			raised[i] *= 1.001
			if feasible(topo, all, raised) {
				t.Fatalf("seed %d: %s carries more of stream %d of %.3f", seed, spec, i, rates)
			}
		}
	}
}

// feasible sends the streams along augmenting paths.
func feasible(t *topology.Topology, all []stream, rates []float64) bool {
	const sink = -1
	capacity := make(map[[2]topology.NodeID]float64)
	below := t.EdgeOf(all[0].to)
	for l := range t.Links() { // up from the senders, down to the receivers, and no valleys
		switch down := l.A == below || t.Ports(l.A)[0].Peer == below; {
		case !t.Live(l.ID):
		case down:
			capacity[[2]topology.NodeID{l.B, l.A}] = t.Rate(l.ID)
		default:
			capacity[[2]topology.NodeID{l.A, l.B}] = t.Rate(l.ID)
		}
	}
	want := 0.0
	in := make(map[topology.NodeID]float64)
	out := make(map[topology.NodeID]float64)
	for i, s := range all {
		out[s.from] += rates[i]
		in[s.to] += rates[i]
		want += rates[i]
	}
	// Streams end in one rack, so only sums matter.
	source := topology.NodeID(t.NumNodes())
	for h, r := range out {
		capacity[[2]topology.NodeID{source, h}] = r
	}
	for h, r := range in {
		capacity[[2]topology.NodeID{h, sink}] = r
	}
	nodes := []topology.NodeID{sink, source}
	for n := range t.Nodes() {
		nodes = append(nodes, n.ID)
	}
	total := 0.0
	for {
		before := map[topology.NodeID]topology.NodeID{source: source}
		queue := []topology.NodeID{source}
		for len(queue) > 0 {
			at := queue[0]
			queue = queue[1:]
			for _, next := range nodes {
				if _, seen := before[next]; !seen && capacity[[2]topology.NodeID{at, next}] > 1e-9 {
					before[next] = at
					queue = append(queue, next)
				}
			}
		}
		if _, ok := before[sink]; !ok {
			return total > want*(1-1e-7)
		}
		push := math.Inf(1)
		for n := topology.NodeID(sink); n != source; n = before[n] {
			push = min(push, capacity[[2]topology.NodeID{before[n], n}])
		}
		for n := topology.NodeID(sink); n != source; n = before[n] {
			capacity[[2]topology.NodeID{before[n], n}] -= push
			capacity[[2]topology.NodeID{n, before[n]}] += push
		}
		total += push
	}
}
