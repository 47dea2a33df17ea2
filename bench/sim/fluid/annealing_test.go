package fluid

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func energy(a *Annealing) float64 { return float64(a.e) / unit }

// overbooked is the energy anew.
func overbooked(f *Fabric, a *Annealing, flows []Pair, demand []float64) float64 {
	load := make([]float64, len(f.capacity))
	for i, p := range flows {
		r := f.Route(p.Src, p.Dst, a.Path(p))
		for _, port := range between(&r) {
			load[port] += demand[i]
		}
	}
	e := 0.0
	for _, l := range load {
		e += max(0, l-1)
	}
	return e
}

func newAnnealing(t *testing.T, f *Fabric, c AnnealingConfig) *Annealing {
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
				cores := slices.Sorted(slices.Values(a.core[4*pod : 4*pod+4]))
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

func TestNewAnnealing_needsACorePerHost(t *testing.T) {
	for _, spec := range []string{kinds[1], kinds[2]} {
		if _, err := NewAnnealing(fabricOf(t, spec), AnnealingConfig{}); err == nil {
			t.Errorf("%s: no error", spec)
		}
	}
	for _, c := range []AnnealingConfig{{Iterations: -1}, {Iterations: maxIterations + 1}, {C: -1}, {C: math.NaN()}} {
		if _, err := NewAnnealing(fabricOf(t, kinds[0]), c); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
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
		return len(a.swaps)
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
