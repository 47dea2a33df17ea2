package sim

import (
	"math/rand/v2"
	"time"

	"weft/bench/sim/tcp"
	"weft/bench/sim/workload"
)

// keptConnections are those that flows of a pair of hosts share.
type keptConnections struct {
	each int
	rng  *rand.Rand
	of   map[[2]int32][]kept // by pair
}

// kept is one of them: a flow of the simulation that begins again. One of several subflows is
// new flows each time, on paths that are drawn anew, with the memory of those before.
type kept struct {
	flow     int32 // its number, -1: it is not open yet
	busy     bool
	waiting  []workload.Flow
	memories []tcp.Memory // of subflows
	since    time.Duration
}

// remember keeps what subflows have learnt.
func (s *simulation) remember(c *connection) {
	c.kept.memories, c.kept.since = c.kept.memories[:0], s.clock()
	for _, i := range c.subflows {
		c.kept.memories = append(c.kept.memories, s.flows.at(i).sender.Memory())
	}
}

// recall gives it to those that follow.
func (s *simulation) recall(c *connection) {
	if c.kept == nil {
		return
	}
	for n, m := range c.kept.memories {
		c.group.Recall(&s.flows.at(c.subflows[n]).sender, m, s.clock()-c.kept.since)
	}
}

func (s *simulation) newKept() {
	if n := s.config.Connections; n > 0 {
		s.keptOf = &keptConnections{
			each: n, rng: rand.New(rand.NewPCG(s.config.Seed, 0x636f6e6e)), of: make(map[[2]int32][]kept),
		}
	}
}

// kept draws the connection of a flow that begins. It is nil if the flow has one of its own.
func (s *simulation) kept(asked *workload.Flow) *kept {
	c := s.keptOf
	if c == nil || asked.Alone {
		return nil
	}
	pair := [2]int32{int32(asked.Src), int32(asked.Dst)}
	list := c.of[pair]
	if list == nil {
		list = make([]kept, c.each)
		for i := range list {
			list[i].flow = -1
		}
		c.of[pair] = list
	}
	return &list[c.rng.IntN(c.each)]
}

// take has a flow use a connection when those before it have ended. The first one opens it:
// that is as if it had been open and idle.
func (s *simulation) take(k *kept, asked workload.Flow) {
	switch {
	case k.busy:
		k.waiting = append(k.waiting, asked)
	case k.flow < 0:
		k.busy = true
		s.openConnection(asked, k)
	default:
		k.busy = true
		s.resume(k, asked)
	}
}

// rest is what a connection does when a flow has ended and nothing of it is on its way.
func (s *simulation) rest(k *kept) {
	k.busy = false
	if len(k.waiting) > 0 {
		next := k.waiting[0]
		k.waiting = k.waiting[1:]
		s.take(k, next)
	}
}

// resume has a connection send another flow.
func (s *simulation) resume(k *kept, asked workload.Flow) {
	i := uint32(k.flow)
	f := s.flows.at(i)
	f.base += f.asked.Bytes
	f.sender.Resume(asked.Bytes, s.clock()-f.end)
	f.receiver.Start(&s.tcp, asked.Bytes)
	f.asked, f.done, f.end = asked, false, 0
	if f.timerAt <= s.now { // nobody will come for that
		f.timerAt = never
	}
	s.pump(i, f)
}
