package sim

import (
	"fmt"
	"math/bits"
	"time"

	"weft/bench/sim/spray"
	"weft/bench/sim/tcp"
	"weft/bench/sim/workload"
	"weft/flowcell"
	"weft/resequencer"
	"weft/topology"
)

// flow is a connection: both of its ends. One that has ended is used again when
// nothing of it is on its way any more.
//
// What packets need lies in as few cache lines as may be, of 64 bytes: in the first what all need
// and the receiver's state, up to its ring, then what chooses paths, then the state of the
// resequencer, then the sender's.
type flow struct {
	src, dst int32
	underWay int32 // packets
	done     bool
	order    order
	receiver tcp.Receiver

	timerAt int64                    // when the timer's event is due; never: there is none
	path    spray.Flow               // where hosts choose
	held    resequencer.Kept[uint32] // packets
	waiting int32                    // segments that wait for an acknowledgement with those that follow
	_       [20]byte

	sender tcp.Sender

	end        time.Duration      // of delivery, 0 before
	tuple      flowcell.FiveTuple // of its data
	numbers    spray.Numbers      // where switches choose
	whole      *connection        // of which it is a subflow; nil: of none
	hash, back uint64             // of its data and its acknowledgements, for switches
	asked      workload.Flow
	kept       *kept // nil: its connection is not kept
	base       int64 // of sequence numbers: bytes of its connection before
	_          [40]byte
}

// order tells how far packets of a flow arrive behind others that were sent later.
type order struct {
	sent uint32
	top  uint32 // 1 more than the latest sent of all that have arrived
	seen uint64 // bit i: the one i before that has arrived
}

// arrived returns behind how many later ones a packet arrived, 63 for 63 and more.
func (o *order) arrived(n uint32) int {
	if n >= o.top {
		o.seen = o.seen<<(n-o.top+1) | 1
		o.top = n + 1
		return 0
	}
	behind := o.top - 1 - n
	if behind > 63 {
		return 63
	}
	o.seen |= 1 << behind
	return bits.OnesCount64(o.seen & (1<<behind - 1))
}

// takeNext has the Workload's next flow begin in its time.
func (s *simulation) takeNext() {
	if s.config.Workload == nil {
		s.sourceEnded = true
		return
	}
	f, ok := s.config.Workload.Next()
	if !ok {
		s.sourceEnded = true
		s.maybeEnd()
		return
	}
	s.next = f
	s.awaited++
	s.wheel.push(event{at: max(ps(f.Start), s.now), load: nextFlow})
}

// beginLater has a flow begin in its time that the Workload begins because another
// one has ended.
func (s *simulation) beginLater(f workload.Flow) {
	s.awaited++
	var i uint32
	if n := len(s.unusedLater); n > 0 {
		i = s.unusedLater[n-1]
		s.unusedLater = s.unusedLater[:n-1]
		s.later[i] = f
	} else {
		i = uint32(len(s.later))
		s.later = append(s.later, f)
	}
	s.wheel.push(event{at: max(ps(f.Start), s.now), what: i, load: laterFlow})
}

// beginFlow begins one now.
func (s *simulation) beginFlow(asked workload.Flow) {
	hosts := topology.NodeID(len(s.delivered))
	if asked.Src < 0 || asked.Src >= hosts || asked.Dst < 0 || asked.Dst >= hosts || asked.Src == asked.Dst || asked.Bytes < 0 {
		s.fails(fmt.Errorf("sim: Workload: flow of %d bytes from host %d to %d; want two different hosts from 0 to %d, and not less than 0 bytes",
			asked.Bytes, asked.Src, asked.Dst, hosts-1))
		return
	}
	if s.graph != nil && !s.graph.joins(int32(asked.Src), int32(asked.Dst)) {
		s.fails(s.graph.noPath(int32(asked.Src), int32(asked.Dst)))
		return
	}
	if k := s.kept(&asked); k != nil {
		s.take(k, asked)
		return
	}
	s.openConnection(asked, nil)
}

// openConnection has a flow begin on a new connection, which may be one that is kept.
func (s *simulation) openConnection(asked workload.Flow, k *kept) {
	if s.tcp.Subflows > 0 {
		s.beginConnection(asked, k)
		return
	}
	i, f := s.newFlow(asked)
	if k != nil {
		f.kept, k.flow = k, int32(i)
	}
	f.sender.Start(&s.tcp, asked.Bytes)
	f.receiver.Start(&s.tcp, asked.Bytes)
	s.pump(i, f)
}

// newFlow returns a flow of which the ends have yet to start.
func (s *simulation) newFlow(asked workload.Flow) (i uint32, f *flow) {
	i = s.flows.take()
	f = s.flows.at(i)
	*f = flow{
		sender: f.sender, receiver: f.receiver, timerAt: never,
		src: int32(asked.Src), dst: int32(asked.Dst), asked: asked,
		tuple: flowcell.FiveTuple{
			Src: s.addresses[asked.Src], Dst: s.addresses[asked.Dst], Proto: flowcell.ProtoTCP,
		},
	}
	s.name(f)
	return i, f
}

// name gives a flow ports of its own, and what follows from them.
func (s *simulation) name(f *flow) {
	f.tuple.SrcPort, f.tuple.DstPort = uint16(s.begun), uint16(s.begun>>16)
	s.begun++
	if s.hosts != nil {
		s.hosts.Open(&f.path, f.asked.Src, f.asked.Dst, &f.tuple)
	}
	if s.hosts == nil || s.graph != nil {
		f.hash = f.tuple.Hash(s.hashSeed)
		f.back = f.tuple.Hash(s.hashSeed + 1)
	}
	if s.hosts == nil {
		f.numbers = spray.NewNumbers(f.hash)
	}
}

// pump sends what a flow may send now, and sees to its timer.
func (s *simulation) pump(i uint32, f *flow) {
	now := s.clock()
	for {
		g, ok := f.sender.Next(now)
		if !ok {
			break
		}
		s.sendData(i, f, g, now)
	}
	if s.probing.on {
		s.dueProbes()
	}
	if at, ok := f.sender.Deadline(); ok && ps(at) < f.timerAt {
		s.setTimer(i, f, ps(at))
	}
}

// setTimer has timer called. Deadlines nearly always move on, so the event is left
// where it is, and looks for a new place when its time has come.
func (s *simulation) setTimer(i uint32, f *flow, at int64) {
	f.timerAt = max(at, s.now)
	s.wheel.push(event{at: f.timerAt, what: i, load: timer})
}

func (s *simulation) timer(i uint32) {
	f := s.flows.at(i)
	if f.done || s.now != f.timerAt {
		return // another event took its place
	}
	f.timerAt = never
	at, ok := f.sender.Deadline()
	if !ok {
		return
	}
	if ps(at) > s.now {
		s.setTimer(i, f, ps(at))
		return
	}
	f.sender.Timeout(s.clock())
	s.timeouts++
	s.pump(i, f)
	if f.whole != nil {
		s.pumpAll(f.whole)
	}
}

// finish ends a flow of which everything has been acknowledged.
func (s *simulation) finish(f *flow) {
	f.done = true
	s.awaited--
	s.flowsEnded++
	if s.config.OnFlow != nil {
		e := FlowEnd{Flow: f.asked, FCT: f.end - f.asked.Start}
		e.Retransmits, e.Timeouts, e.DupAcks = f.sender.Stats()
		if f.whole != nil {
			s.sumUp(f.whole, &e)
		}
		s.config.OnFlow(e)
	}
	if f.whole != nil {
		s.finishRest(f.whole)
		if k := f.whole.kept; k != nil {
			s.remember(f.whole)
			s.rest(k)
		}
	}
	s.config.Workload.Done(f.asked, s.clock(), s.begin)
	s.maybeEnd()
}

// leave takes note that a packet of a flow is no longer on its way.
func (s *simulation) leave(i uint32, f *flow) {
	if f.underWay--; f.underWay == 0 && f.done {
		s.release(i, f)
	}
}

// release forgets an ended flow of which nothing is on its way.
func (s *simulation) release(i uint32, f *flow) {
	if f.kept == nil && s.hosts != nil {
		s.hosts.Close(&f.path)
	}
	if s.resequencer != nil {
		s.resequencer.Forget(&f.held)
	}
	if f.kept != nil {
		s.rest(f.kept)
		return
	}
	s.flows.free(i)
}

// maybeEnd ends the run when nothing else can happen.
func (s *simulation) maybeEnd() {
	if s.sourceEnded && s.awaited == 0 && s.open == nil {
		s.ended = true
	}
}
