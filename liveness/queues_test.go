package liveness

import (
	"time"

	"weft/encap"
	"weft/topology"
)

// queue is that of a side of a link: first in, first out, but for what switches let
// pass.
type queue struct {
	rate  float64 // bits per second
	limit int     // bytes waiting, beyond which packets are dropped
	busy  time.Duration
}

// asData reports whether a probe waits as data does.
func asData(packet []byte) bool {
	if packet[0]>>4 == 6 {
		return packet[0]<<4|packet[1]>>4 != encap.ProbeTOS
	}
	return packet[1] != encap.ProbeTOS
}

// rated gives all links the same rate, and queues of 30 ms.
func (s *world) rated(bits float64) {
	s.queues = make(map[side]*queue)
	for l := range topology.LinkID(s.topo.NumLinks()) {
		for _, up := range []bool{true, false} {
			s.queues[side{l, up}] = &queue{rate: bits, limit: int(bits * 0.03 / 8)}
		}
	}
}

// slowed gives a link another rate, both ways, and a queue of 90 ms.
func (s *world) slowed(l topology.LinkID, bits float64) {
	for _, up := range []bool{true, false} {
		q := s.queues[side{l, up}]
		q.rate, q.limit = bits, int(bits*0.09/8)
	}
}

// travel has a packet of a size go along a path, and calls one of the two, unless nil,
// when it has arrived or been lost.
func (s *world) travel(r route, size int, asData bool, arrived, lost func()) {
	if s.queues == nil {
		if d, ok := s.carry(r, size); ok {
			s.after(d, arrived)
		} else if lost != nil {
			lost()
		}
		return
	}
	t := &trip{s: s, left: r, size: size, asData: asData, arrived: arrived, lost: lost}
	t.step = t.hop
	t.hop()
}

// trip is that of a packet by a route of which some is left.
type trip struct {
	s             *world
	left          route
	size          int
	asData        bool
	arrived, lost func()
	step          func() // hop
}

// hop takes it over the next link.
func (t *trip) hop() {
	if len(t.left) == 0 {
		t.arrived()
		return
	}
	q, now := t.s.queues[t.left[0]], t.s.now
	t.left = t.left[1:]
	wait := max(q.busy-now, 0)
	takes := time.Duration(float64(t.size*8) / q.rate * float64(time.Second))
	switch {
	case !t.asData:
		wait = 0
	case int(wait.Seconds()*q.rate/8)+t.size > q.limit:
		if t.lost != nil {
			t.lost()
		}
		return
	default:
		q.busy = now + wait + takes
	}
	t.s.after(wait+takes+20*time.Microsecond, t.step)
}

// flow is a transfer without an end that sends evenly by all paths in use, and adapts
// its window as TCP does.
type flow struct {
	s        *world
	from     *simHost
	dst      topology.NodeID
	window   float64 // packets
	flying   int
	next     int
	halved   time.Duration
	trip     time.Duration
	arrived  int
	previous int // arrived when asked last
	ended    bool
}

const (
	dataSize = 1500
	ackSize  = 60
)

// flow begins one.
func (s *world) flow(from *simHost, dst topology.NodeID) *flow {
	f := &flow{s: s, from: from, dst: dst, window: 10, trip: 10 * time.Millisecond}
	s.after(time.Duration(s.rng.Int64N(int64(10*time.Millisecond))), f.send)
	s.keepActive(from, dst)
	return f
}

func (f *flow) send() {
	for !f.ended && float64(f.flying) < f.window {
		live := f.from.topo.Paths(f.from.id, f.dst).Live
		n := live[f.next%len(live)]
		f.next++
		f.flying++
		began := f.s.now
		lost := func() { f.s.after(f.trip, f.lost) } // is noticed a round trip later
		f.s.travel(f.s.route(f.from.id, f.dst, n), dataSize, true, func() {
			f.arrived++
			f.s.travel(f.s.route(f.dst, f.from.id, n), ackSize, true, func() {
				f.trip += (f.s.now - began - f.trip) / 8
				f.flying--
				f.window += 1 / f.window
				f.send()
			}, lost)
		}, lost)
	}
}

func (f *flow) lost() {
	f.flying--
	if f.s.now-f.halved > f.trip {
		f.halved, f.window = f.s.now, max(f.window/2, 2)
	}
	f.send()
}

// rate is how many bits per second have arrived since it was asked last, d ago.
func (f *flow) rate(d time.Duration) float64 {
	n := f.arrived - f.previous
	f.previous = f.arrived
	return float64(n*dataSize*8) / d.Seconds()
}
