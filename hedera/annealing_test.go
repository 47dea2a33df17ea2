package hedera

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"weft/topology"
)

func energy(a *Annealing) float64 { return float64(a.e) / unit }

// overbooked is the energy anew.
func overbooked(f Space, a *Annealing, flows []Pair, demand []float64) float64 {
	load := make([]float64, len(f.Capacity()))
	for i, p := range flows {
		for _, u := range f.AppendRoute(nil, p.Src, p.Dst, a.Path(p)) {
			load[u.Port] += demand[i] * float64(u.Share) / Whole
		}
	}
	e := 0.0
	for p, l := range load {
		e += max(0, l-f.Capacity()[p]/f.HostRate())
	}
	return e
}

func newAnnealing(t *testing.T, f Space, c AnnealingConfig) *Annealing {
	t.Helper()
	a, err := NewAnnealing(f, c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// After any search the energy is that of its paths, hosts of a pod have different
// cores, and the next search does not end worse.
func TestAnnealing_energyIsThatOfThePaths(t *testing.T) {
	f := fabricOf(t, kinds[0])
	var e Estimator
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 4))
		flows := randomPairs(rng, 16, 48)
		demand := e.Estimate(flows, 16)
		a := newAnnealing(t, f, AnnealingConfig{Iterations: 200, C: []float64{0, .5, 1000}[seed%3], Seed: seed})
		last := math.Inf(1)
		for range 3 {
			a.Schedule(flows, demand)
			if want := overbooked(f, a, flows, demand); math.Abs(energy(a)-want) > 1e-6 {
				t.Fatalf("seed %d: energy %v, want %v", seed, energy(a), want)
			}
			if energy(a) > last {
				t.Fatalf("seed %d: energy %v after %v: not the best state that was seen", seed, energy(a), last)
			}
			last = energy(a)
			for pod := range 4 {
				cores := slices.Sorted(slices.Values(a.choice[4*pod : 4*pod+4]))
				if !slices.Equal(cores, []int32{0, 1, 2, 3}) {
					t.Fatalf("seed %d: pod %d has cores %v", seed, pod, cores)
				}
			}
		}
	}
}

// A stride has a placement without conflicts (thesis §4.4.2: the heuristics
// consistently find it).
func TestAnnealing_findsAStridesPlacement(t *testing.T) {
	f := fabricOf(t, kinds[0])
	for by := 1; by < 16; by++ {
		flows, demand := make([]Pair, 16), make([]float64, 16)
		for h := range flows {
			flows[h], demand[h] = Pair{nodeID(h), nodeID((h + by) % 16)}, 1
		}
		a := newAnnealing(t, f, AnnealingConfig{Iterations: 5000, C: .5, Seed: uint64(by)})
		if a.Schedule(flows, demand); energy(a) != 0 {
			t.Errorf("stride %d: overbooked by %v", by, energy(a))
		}
	}
}

func TestNewAnnealing_refusals(t *testing.T) {
	for _, c := range []AnnealingConfig{{Iterations: -1}, {Iterations: maxIterations + 1}, {C: -1}, {C: math.NaN()}} {
		if _, err := NewAnnealing(fabricOf(t, kinds[0]), c); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
}

// In any fabric the energy after a search is that of the paths, which are the pairs', and a
// search that begins with the best state does not end worse. What Prefer has said is where
// the search begins.
func TestAnnealing_anyFabric(t *testing.T) {
	for name, f := range fabrics(t) {
		rng := rand.New(rand.NewPCG(7, 4))
		flows := randomPairs(rng, f.Hosts(), 2*f.Hosts())
		var e Estimator
		demand := slices.Clone(e.Estimate(flows, f.Hosts()))
		a := newAnnealing(t, f, AnnealingConfig{Iterations: 2000, C: .5, Seed: 3})
		last := math.Inf(1)
		for range 3 {
			a.Schedule(flows, demand)
			if want := overbooked(f, a, flows, demand); math.Abs(energy(a)-want) > 1e-3 {
				t.Errorf("%s: energy %v, want %v", name, energy(a), want)
			}
			if energy(a) > last {
				t.Errorf("%s: energy %v after %v", name, energy(a), last)
			}
			last = energy(a)
		}
		for _, p := range flows {
			if path := a.Path(p); path < 0 || path >= f.Paths(p.Src, p.Dst) {
				t.Errorf("%s: %v has path %d of %d", name, p, path, f.Paths(p.Src, p.Dst))
			}
			for path := range f.Paths(p.Src, p.Dst) {
				if a.Prefer(p, path); a.Path(p) != path && f.Paths(p.Src, p.Dst) > 1 {
					t.Fatalf("%s: %v prefers path %d and has %d", name, p, path, a.Path(p))
				}
			}
		}
	}
}

// Two flows that begin with the same path, and fit the fabric only by different ones, find
// these in every kind of fabric.
func TestAnnealing_findsTheFreePath(t *testing.T) {
	for name, f := range fabrics(t) {
		far := topology.NodeID(f.Hosts() - 1)
		n := f.Paths(0, far)
		if n < 2 {
			continue
		}
		a := newAnnealing(t, f, AnnealingConfig{Iterations: 20000, C: .5, Seed: 1})
		var flows []Pair
		var demand []float64
		for i := range 2 { // two destinations of the last rack, which begin with the same choice
			flows = append(flows, Pair{topology.NodeID(i), far - topology.NodeID(i)})
			demand = append(demand, 1)
		}
		for _, p := range flows {
			a.Prefer(p, 0)
		}
		a.Schedule(flows, demand)
		if got := overbooked(f, a, flows, demand); got > 1e-3 && capable(f, flows) {
			t.Errorf("%s: overbooked by %v", name, got)
		}
	}
}

// capable reports whether two flows fit the fabric, by trying all of their paths.
func capable(f Space, flows []Pair) bool {
	for i := range f.Paths(flows[0].Src, flows[0].Dst) {
		for j := range f.Paths(flows[1].Src, flows[1].Dst) {
			load := make([]float64, len(f.Capacity()))
			for k, path := range []int{i, j} {
				for _, u := range f.AppendRoute(nil, flows[k].Src, flows[k].Dst, path) {
					load[u.Port] += float64(u.Share) / Whole
				}
			}
			over := false
			for p, l := range load {
				over = over || l > f.Capacity()[p]/f.HostRate()+1e-6
			}
			if !over {
				return true
			}
		}
	}
	return false
}

// A worse state is taken with a probability that falls with C and with the
// temperature; taken back at the end is what did not lead to a better one.
func TestAnnealing_takesWorseStatesByC(t *testing.T) {
	f := fabricOf(t, kinds[0])
	flows := randomPairs(rand.New(rand.NewPCG(1, 4)), 16, 48)
	demand := make([]float64, len(flows)) // more than there is, so that no state ends the search
	for i := range demand {
		demand[i] = 1
	}
	taken := func(c float64) int {
		a := newAnnealing(t, f, AnnealingConfig{Iterations: 1000, C: c, Seed: 1})
		a.Schedule(flows, demand)
		return len(a.steps)
	}
	if all, better := taken(0), taken(1e9); all < 500 || better > all/2 {
		t.Errorf("of 1000 states %d taken where any is, %d where no worse one is", all, better)
	}
	a := newAnnealing(t, f, AnnealingConfig{Iterations: 100, C: .5})
	for _, c := range []struct {
		worse       int64
		temperature int
		want        float64
	}{{0, 50, 1}, {unit, 100, math.Exp(-.5)}, {unit, 50, math.Exp(-1)}, {2 * unit, 100, math.Exp(-1)}} {
		if got := a.accept(c.worse, c.temperature); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("worse by %d at %d: %v, want %v", c.worse, c.temperature, got, c.want)
		}
	}
}
