package fluid

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// maxMin is the textbook's progressive filling, with rationals: capacities are
// whole numbers.
func maxMin(capacity []int64, routes [][]int32) []float64 {
	left := make([]*big.Rat, len(capacity))
	for i, c := range capacity {
		left[i] = new(big.Rat).SetInt64(c)
	}
	rates := make([]float64, len(routes))
	done := make([]bool, len(routes))
	level := new(big.Rat)
	for {
		rising := make([]int64, len(capacity))
		some := false
		for f, r := range routes {
			if done[f] {
				continue
			}
			some = true
			for _, p := range r {
				rising[p]++
			}
		}
		if !some {
			return rates
		}
		var step *big.Rat
		for p, n := range rising {
			if n == 0 {
				continue
			}
			if s := new(big.Rat).Quo(left[p], new(big.Rat).SetInt64(n)); step == nil || s.Cmp(step) < 0 {
				step = s
			}
		}
		level.Add(level, step)
		for p, n := range rising {
			left[p].Sub(left[p], new(big.Rat).Mul(step, new(big.Rat).SetInt64(n)))
		}
		for f, r := range routes {
			if done[f] {
				continue
			}
			for _, p := range r {
				if left[p].Sign() == 0 {
					done[f] = true
					rates[f], _ = level.Float64()
				}
			}
		}
	}
}

// model is a network and what it should hold.
type model struct {
	n        *network
	capacity []int64
	ids      []flowID
	routes   [][]int32
}

func newModel(rng *rand.Rand, ports int) *model {
	m := &model{}
	var capacity []float64
	for range ports {
		c := rng.Int64N(12) * 10
		m.capacity = append(m.capacity, c)
		capacity = append(capacity, float64(c))
	}
	m.n = newNetwork(capacity)
	return m
}

func (m *model) route(rng *rand.Rand) []int32 {
	var r []int32
	for _, p := range rng.Perm(len(m.capacity))[:1+rng.IntN(maxHops)] {
		r = append(r, int32(p))
	}
	return r
}

func (m *model) change(rng *rand.Rand) {
	switch i := rng.IntN(10); {
	case i < 5 || len(m.ids) == 0:
		r := m.route(rng)
		m.ids, m.routes = append(m.ids, m.n.add(routeOf(r...))), append(m.routes, r)
	case i < 8:
		k := rng.IntN(len(m.ids))
		m.n.remove(m.ids[k])
		last := len(m.ids) - 1
		m.ids[k], m.routes[k] = m.ids[last], m.routes[last]
		m.ids, m.routes = m.ids[:last], m.routes[:last]
	default:
		k := rng.IntN(len(m.ids))
		m.routes[k] = m.route(rng)
		m.n.reroute(m.ids[k], routeOf(m.routes[k]...))
	}
}

// check compares all rates with the oracle's, and those that changed with the
// list.
func (m *model) check(t *testing.T, old map[flowID]float64, changed []flowID) {
	t.Helper()
	want := maxMin(m.capacity, m.routes)
	told := make(map[flowID]bool)
	for _, id := range changed {
		told[id] = true
	}
	load := make([]float64, len(m.capacity))
	for i, id := range m.ids {
		got := m.n.rate(id)
		if math.Abs(got-want[i]) > 1e-6 {
			t.Fatalf("flow %d over %v: rate %v, want %v", i, m.routes[i], got, want[i])
		}
		if was, ok := old[id]; ok && was != got && !told[id] {
			t.Fatalf("flow %d went from %v to %v, which Settle does not tell", i, was, got)
		}
		for _, p := range m.routes[i] {
			load[p] += got
		}
	}
	for i, id := range m.ids {
		p := m.n.flows[id].held
		if load[p] < float64(m.capacity[p])-1e-6 {
			t.Fatalf("flow %d is said to be held by port %d, which has %v of %d", i, p, load[p], m.capacity[p])
		}
	}
}

func TestSettle_isMaxMinFair(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 1))
		m := newModel(rng, maxHops+rng.IntN(30))
		for range 12 {
			old := make(map[flowID]float64)
			for _, id := range m.ids {
				old[id] = m.n.rate(id)
			}
			for range 1 + rng.IntN(4)*rng.IntN(6) {
				m.change(rng)
			}
			changed := m.n.settle()
			if m.check(t, old, changed); t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
}

// After many changes nothing has drifted, and what one event concerns is few of
// many flows.
func TestSettle_staysExactAndLocal(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	m := newModel(rng, 120)
	opened, settled := 0, 0
	for i := range 3000 {
		m.change(rng)
		m.n.settle()
		if i > 200 {
			opened += len(m.n.fill.held)
			settled += len(m.ids)
		}
	}
	m.n.settle()
	m.check(t, nil, nil)
	t.Logf("%d of %d flows opened", opened, settled)
	if opened*2 > settled {
		t.Errorf("opened %d of %d flows: one event should concern fewer", opened, settled)
	}
}

func TestSettle_allocatesNothing(t *testing.T) {
	f := fabricOf(t, "fat-tree:k=4,host-rate=1000,fabric-rate=1000,core-rate=1000")
	n := newNetwork(f.Capacity())
	for h := range 16 {
		n.add(f.Route(nodeID(h), nodeID((h+4)%16), h%4))
	}
	n.settle()
	if got := testing.AllocsPerRun(100, func() {
		id := n.add(f.Route(0, 9, 2))
		n.settle()
		n.remove(id)
		n.settle()
	}); got != 0 {
		t.Errorf("%v allocations per event, want none", got)
	}
}
