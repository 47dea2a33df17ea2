package thesis

import (
	"weft/bench/sim/fluid"
	"weft/hedera"
	"weft/topology"
)

// scheme places the flows of a static pattern.
type scheme struct {
	name  string
	place func(f *fluid.Fabric, all []hedera.Pair, seed uint64) ([]int, error)
}

func hashed(name string, key fluid.HashKey) scheme {
	return scheme{name, func(f *fluid.Fabric, all []hedera.Pair, seed uint64) ([]int, error) {
		return hash(f, all, key, seed), nil
	}}
}

func hash(f *fluid.Fabric, all []hedera.Pair, key fluid.HashKey, seed uint64) []int {
	h := &fluid.Hash{Fabric: f, Key: key, Seed: seed}
	paths := make([]int, len(all))
	for i, p := range all {
		paths[i] = h.Path(p, uint64(i))
	}
	return paths
}

// firstFit falls back on a hash.
func firstFit(name string, key fluid.HashKey) scheme {
	return firstFitElse(name, func(f *fluid.Fabric, all []hedera.Pair, seed uint64) []int { return hash(f, all, key, seed) })
}

// firstPaths are all the first path.
func firstPaths(_ *fluid.Fabric, all []hedera.Pair, _ uint64) []int { return make([]int, len(all)) }

// firstFitElse falls back on other paths.
func firstFitElse(name string, other func(f *fluid.Fabric, all []hedera.Pair, seed uint64) []int) scheme {
	return scheme{name, func(f *fluid.Fabric, all []hedera.Pair, seed uint64) ([]int, error) {
		paths := other(f, all, seed)
		fit := hedera.NewFirstFit(f)
		var e hedera.Estimator
		for i, d := range e.Estimate(all, f.Hosts()) {
			if path, ok := fit.Place(all[i], d); ok {
				paths[i] = path
			}
		}
		return paths, nil
	}}
}

func annealed(iterations int) scheme {
	return scheme{"SA", func(f *fluid.Fabric, all []hedera.Pair, seed uint64) ([]int, error) {
		a, err := newAnnealing(f, iterations, seed)
		if err != nil {
			return nil, err
		}
		var e hedera.Estimator
		a.Schedule(all, e.Estimate(all, f.Hosts()))
		return annealedPaths(a, all), nil
	}}
}

// newAnnealing has the thesis' c for as many hosts.
func newAnnealing(f *fluid.Fabric, iterations int, seed uint64) (*hedera.Annealing, error) {
	c := hedera.AnnealingConfig{Iterations: iterations, C: largeC, Seed: seed}
	if f.Hosts() <= 16 {
		c.C = smallC
	}
	return hedera.NewAnnealing(f, c)
}

func annealedPaths(a *hedera.Annealing, all []hedera.Pair) []int {
	paths := make([]int, len(all))
	for i, p := range all {
		paths[i] = a.Path(p)
	}
	return paths
}

// nonBlocking puts all hosts at one switch.
var nonBlocking = scheme{"non-blocking", func(_ *fluid.Fabric, all []hedera.Pair, _ uint64) ([]int, error) {
	paths := make([]int, len(all))
	for i := range paths {
		paths[i] = fluid.Direct
	}
	return paths, nil
}}

// fabricOf parses and makes ports.
func fabricOf(spec string) (*topology.Topology, *fluid.Fabric, error) {
	t, err := topology.Parse(spec)
	if err != nil {
		return nil, nil, err
	}
	f, err := fluid.NewFabric(t)
	return t, f, err
}
