package fluid

import "math/rand/v2"

// increase is what a flow in congestion avoidance gains per tick of AIMD, in
// Mbit/s: 15 MB/s, a packet of 1,500 bytes more per round trip of 100 µs (thesis
// §4.3.5).
const increase = 120

// AIMD is the thesis' model of how TCP finds its rates (§4.3.5). In every tick each flow,
// in a new random order, doubles its rate in slow start, or otherwise adds to it, as far
// as its path has room; if there is no room, the flow halves its rate. The thesis does
// not say how slow start ends: here with the first halving. A tick is a round trip.
type AIMD struct {
	capacity []float64
	routes   []Route
	rate     []float64
	started  []bool // slow start is over
	load     []float64
	order    []int32
	rng      *rand.Rand
}

// NewAIMD begins flows, at a packet per round trip.
func NewAIMD(capacity []float64, routes []Route, seed uint64) *AIMD {
	a := &AIMD{
		capacity: capacity,
		routes:   routes,
		rate:     make([]float64, len(routes)),
		started:  make([]bool, len(routes)),
		load:     make([]float64, len(capacity)),
		order:    make([]int32, len(routes)),
		rng:      rand.New(rand.NewPCG(seed, 0x61696d64)),
	}
	for i := range a.order {
		a.order[i] = int32(i)
		a.change(i, min(increase, a.room(i)))
	}
	return a
}

// Rates returns the flows' rates in Mbit/s, valid until the next Tick.
func (a *AIMD) Rates() []float64 { return a.rate }

// Tick is a round trip.
func (a *AIMD) Tick() {
	a.rng.Shuffle(len(a.order), func(i, j int) { a.order[i], a.order[j] = a.order[j], a.order[i] })
	for _, o := range a.order {
		i := int(o)
		room := a.room(i)
		switch {
		case room < increase*slack:
			a.started[i] = true
			a.change(i, -a.rate[i]/2)
		case a.started[i]:
			a.change(i, min(increase, room))
		default:
			a.change(i, min(max(increase, a.rate[i]), room))
		}
	}
}

// room returns what all of a flow's way has left.
func (a *AIMD) room(i int) float64 {
	ports := a.routes[i].list()
	room := a.capacity[ports[0]] - a.load[ports[0]]
	for _, p := range ports[1:] {
		room = min(room, a.capacity[p]-a.load[p])
	}
	return max(0, room)
}

func (a *AIMD) change(i int, by float64) {
	a.rate[i] += by
	for _, p := range a.routes[i].list() {
		a.load[p] += by
	}
}
