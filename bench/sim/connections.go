package sim

import (
	"math/rand/v2"

	"weft/bench/sim/workload"
)

// connections are those that flows of a pair of hosts share. Each is a flow of the simulation
// that begins again.
type connections struct {
	each    int
	rng     *rand.Rand
	of      map[[2]int32][]int32 // by pair: numbers of flows, -1: not open yet
	waiting map[uint32][]workload.Flow
}

func (s *simulation) newConnections() {
	if n := s.config.Connections; n > 0 {
		s.connections = &connections{
			each: n, rng: rand.New(rand.NewPCG(s.config.Seed, 0x636f6e6e)),
			of: make(map[[2]int32][]int32), waiting: make(map[uint32][]workload.Flow),
		}
	}
}

// keeps reports whether a flow's connection is kept when it has ended.
func (s *simulation) keeps(f *flow) bool { return s.connections != nil && !f.asked.Alone }

// kept draws the connection of a flow that begins. It is nil if the flow has one of its own.
// Below 0 the flow opens it: that is as if it had been open and idle.
func (s *simulation) kept(asked *workload.Flow) *int32 {
	c := s.connections
	if c == nil || asked.Alone {
		return nil
	}
	pair := [2]int32{int32(asked.Src), int32(asked.Dst)}
	list := c.of[pair]
	if list == nil {
		list = make([]int32, c.each)
		for i := range list {
			list[i] = -1
		}
		c.of[pair] = list
	}
	return &list[c.rng.IntN(c.each)]
}

// take has a flow use a connection when those before it have ended.
func (s *simulation) take(i uint32, asked workload.Flow) {
	f := s.flows[i]
	if f.done && f.underWay == 0 {
		s.resume(i, f, asked)
		return
	}
	s.connections.waiting[i] = append(s.connections.waiting[i], asked)
}

// rest is what a connection does when a flow has ended and nothing of it is on its way.
func (s *simulation) rest(i uint32, f *flow) {
	if list := s.connections.waiting[i]; len(list) > 0 {
		s.connections.waiting[i] = list[1:]
		s.resume(i, f, list[0])
	}
}

// resume has a connection send another flow.
func (s *simulation) resume(i uint32, f *flow, asked workload.Flow) {
	f.base += f.asked.Bytes
	f.sender.Resume(asked.Bytes, s.clock()-f.end)
	f.receiver.Start(&s.tcp, asked.Bytes)
	f.asked, f.done, f.end = asked, false, 0
	if f.timerAt <= s.now { // nobody will come for that
		f.timerAt = never
	}
	s.pump(i, f)
}
