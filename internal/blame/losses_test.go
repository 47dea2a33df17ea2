package blame

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"weft/liveness"
	"weft/topology"
)

// fabric is what one host sees of a fabric: its ways up, its paths to a host of each other
// rack, and how their places lose packets.
type fabric struct {
	random *rand.Rand
	paths  []Path
	loss   map[Place]float64
	all    float64 // lost on every path: the host's own queue, say
	bursts float64 // chance of a burst of ten losses on each path in each slot
}

func newFabric(t testing.TB, spec string, seed uint64) *fabric {
	top, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	f := &fabric{random: rand.New(rand.NewPCG(seed, 0)), loss: map[Place]float64{}}
	const self = 0
	var paths []liveness.PathHealth
	ways := map[netip.Addr]bool{}
	for rack := range top.Racks() {
		dst := top.FirstHost(rack)
		set := top.Paths(self, dst)
		for n := range set.Count() {
			paths = append(paths, liveness.PathHealth{Dst: top.Node(dst).Addr, Path: n, Via: set.Addr(n)})
			if !ways[set.Addr(n)] {
				ways[set.Addr(n)] = true
				paths = append(paths, liveness.PathHealth{Dst: top.Node(self).Addr, Path: n, Via: set.Addr(n)})
			}
		}
	}
	f.paths = Evidence(top, self, paths)
	if len(f.paths) != len(paths) {
		t.Fatalf("%s: evidence of %d of %d paths", spec, len(f.paths), len(paths))
	}
	return f
}

// run sends packets by all paths, in slots of 100 ms.
func (f *fabric) run(slots, packets int) []Path {
	paths := slices.Clone(f.paths)
	for i := range paths {
		arrives := 1 - f.all
		for _, at := range paths[i].Places {
			arrives *= 1 - f.loss[at]
		}
		for range slots {
			lost := 0.0
			for range packets {
				if f.random.Float64() > arrives {
					lost++
				}
			}
			if f.random.Float64() < f.bursts {
				lost = max(lost, float64(min(packets, 10)))
			}
			p := &paths[i]
			p.Sent += float32(packets)
			p.Lost += float32(lost)
			p.Squares += float32(lost * lost)
			p.Slots++
		}
	}
	return paths
}

// places are all that paths cross.
func (f *fabric) places() []Place {
	var places []Place
	for _, p := range f.paths {
		places = append(places, p.Places...)
	}
	slices.SortFunc(places, comparePlaces)
	return slices.Compact(places)
}

// One place loses packets, from half a percent on to all, whatever all paths lose in common:
// it comes first, with its rate, and nothing else is blamed.
func TestLosses_onePlace(t *testing.T) {
	for _, spec := range []string{"fat-tree:k=4", "fat-tree:k=8", "leaf-spine:leaves=4,spines=8,hosts=2", "vl2:d0=4,d1=4,d2=4"} {
		for seed := range uint64(12) {
			f := newFabric(t, spec, seed)
			places := f.places()
			bad := places[f.random.IntN(len(places))]
			f.loss[bad] = []float64{0.005, 0.03, 0.2, 1}[seed%4]
			f.all = []float64{0, 0.0002, 0.001}[seed%3]
			got := Losses(f.run(100, 100))
			if len(got) != 1 || !slices.Contains(got[0].Places, bad) {
				t.Fatalf("%s, seed %d: %v loses %v: %+v", spec, seed, bad, f.loss[bad], got)
			}
			if v := got[0]; math.Abs(v.Loss-f.loss[bad]) > 0.25*f.loss[bad]+0.001 || v.Confidence < 0.999 {
				t.Errorf("%s, seed %d: %v loses %v: %+v", spec, seed, bad, f.loss[bad], v)
			}
		}
	}
}

// Two places lose packets, as two in different places can be told apart.
func TestLosses_twoPlaces(t *testing.T) {
	for seed := range uint64(20) {
		f := newFabric(t, "fat-tree:k=4", seed)
		places := f.places()
		f.random.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
		f.loss[places[0]], f.loss[places[1]] = 0.02, 0.3
		got := Losses(f.run(100, 100))
		var blamed []Place
		for _, v := range got {
			blamed = append(blamed, v.Places...)
		}
		// One can hide behind the other where all of its paths cross that one.
		if !slices.Contains(blamed, places[1]) || len(got) > 2 {
			t.Errorf("seed %d: %v: %+v", seed, places[:2], got)
		}
	}
}

// What looks like a fault and is none: losses that all paths share, bursts, a few losses,
// and nothing at all.
func TestLosses_healthy(t *testing.T) {
	for seed := range uint64(200) {
		f := newFabric(t, "fat-tree:k=4", seed)
		f.all = []float64{0, 0.0005, 0.01, 0.2}[seed%4]
		f.bursts = []float64{0, 0.001, 0.05}[seed%3]
		if got := Losses(f.run(50, 20)); len(got) > 0 {
			t.Errorf("seed %d: %+v", seed, got)
		}
	}
	at := []Place{{Link: 1}}
	for _, paths := range [][]Path{nil, {{}}, {{Places: at}},
		{{Places: at, Lately: liveness.Lately{Sent: float32(math.NaN()), Lost: float32(math.Inf(1))}}, {Lately: liveness.Lately{Sent: 1, Lost: 5}}}} {
		if got := Losses(paths); len(got) > 0 {
			t.Errorf("%+v: %+v", paths, got)
		}
	}
}

// Without the dispersion, bursts would accuse links of healthy fabrics.
func TestLosses_burstsAreLessEvidence(t *testing.T) {
	blamed := 0
	for seed := range uint64(50) {
		f := newFabric(t, "fat-tree:k=4", seed)
		f.bursts = 0.01
		paths := f.run(50, 100)
		for i := range paths {
			paths[i].Squares, paths[i].Slots = 0, 0
		}
		blamed += len(Losses(paths))
	}
	if blamed < 25 {
		t.Errorf("%d links blamed: bursts alone do not show what the dispersion is for", blamed)
	}
}

// The first verdict is that of a search over all links and rates by the plain likelihood.
func TestLosses_firstIsTheLikeliest(t *testing.T) {
	decided := 0
	for seed := range uint64(40) {
		f := newFabric(t, "fat-tree:k=4", seed)
		places := f.places()
		for range 1 + seed%3 {
			f.loss[places[f.random.IntN(len(places))]] = 0.01 + 0.3*f.random.Float64()
		}
		paths := f.run(30, 30)
		got := Losses(paths)
		if len(got) == 0 || got[0].Confidence < 0.99 {
			continue // two explanations are about as good
		}
		s := newSearch(paths)
		s.blame(s.quietest())
		base := s.rate(func(path int) bool { return !s.over[path] })
		var best Place
		likeliest := 0.0
		for _, at := range places {
			for loss := 0.001; loss < 1; loss += 0.001 {
				sum, scatter, all := 0.0, 0.0, 0.0
				for i, p := range paths {
					if !slices.Contains(p.Places, at) {
						continue
					}
					scatter += s.paths[i].scatter
					n, k := float64(p.Sent), float64(p.Lost)
					all += k
					lost := 1 - (1-base)*(1-loss)
					sum += k*math.Log(lost/base) + (n-k)*math.Log((1-lost)/(1-base))
				}
				if sum /= max(scatter/max(all, 1), 1); sum > likeliest {
					best, likeliest = at, sum
				}
			}
		}
		if decided++; !slices.Contains(got[0].Places, best) {
			t.Errorf("seed %d: the likeliest is %v (%v): %+v", seed, best, likeliest, got)
		}
	}
	if decided < 30 {
		t.Errorf("only %d of 40 are decided", decided)
	}
}

// BenchmarkLosses is a host of a fat-tree of k=8 that sends to all racks.
func BenchmarkLosses(b *testing.B) {
	f := newFabric(b, "fat-tree:k=8", 1)
	f.loss[f.places()[9]] = 0.01
	paths := f.run(100, 100)
	for b.Loop() {
		Losses(paths)
	}
	b.ReportMetric(float64(len(paths)), "paths")
}
