package reorder

import (
	"slices"
	"time"

	"weft/flowcell"
)

// sortedList is the obvious implementation: a map of flows, each with a sorted
// slice of held packets. It is unbounded and ignores SYNs.
type sortedList struct {
	flows   map[flowcell.FiveTuple]*listed
	holding []*listed // since the earliest first
	parsed  []flowcell.Packet
	out     []int

	held, maxHeld int // bytes
}

type listed struct {
	next  uint32
	held  []piece
	since time.Duration // when the first of held came
}

type piece struct {
	seq, end uint32
	name     int
}

// listTimeout is how long it waits for a gap.
const listTimeout = 10 * time.Millisecond

func newSortedList() *sortedList {
	return &sortedList{
		flows:  make(map[flowcell.FiveTuple]*listed),
		parsed: make([]flowcell.Packet, batchSize),
	}
}

func (*sortedList) prepare(*batch) {}

func (s *sortedList) push(b *batch) {
	segments := b.segments
	if b.parse {
		segments = parse(b, s.parsed)
	}
	for i := range segments {
		s.pushOne(&segments[i], b.names[i], b.now)
	}
	s.maxHeld = max(s.maxHeld, s.held)
	for len(s.holding) > 0 && b.now-s.holding[0].since >= listTimeout {
		s.giveUp(s.holding[0], b.now)
	}
}

func (s *sortedList) pushOne(p *flowcell.Packet, name int, now time.Duration) {
	f := s.flows[p.Flow]
	if f == nil {
		f = &listed{next: p.Seq}
		s.flows[p.Flow] = f
	}
	k := piece{p.Seq, p.Seq + uint32(p.Payload), name}
	if behind := int32(k.seq - f.next); behind <= 0 {
		s.deliver(f, k)
		if len(f.held) > 0 {
			s.release(f, now)
		}
		return
	}
	if len(f.held) == 0 {
		f.since = now
		s.holding = append(s.holding, f)
	}
	at, _ := slices.BinarySearchFunc(f.held, k.seq, func(p piece, seq uint32) int { return int(int32(p.seq - seq)) })
	f.held = slices.Insert(f.held, at, k)
	s.held += packetSize
}

func (s *sortedList) deliver(f *listed, k piece) {
	if int32(k.end-f.next) > 0 {
		f.next = k.end
	}
	s.out = append(s.out, k.name)
}

// release delivers what is held of f up to its first gap, which is waited for
// from now on.
func (s *sortedList) release(f *listed, now time.Duration) {
	n := 0
	for n < len(f.held) && int32(f.held[n].seq-f.next) <= 0 {
		s.deliver(f, f.held[n])
		n++
	}
	if n == 0 {
		return
	}
	s.held -= n * packetSize
	f.held = slices.Delete(f.held, 0, n)
	s.holding = slices.DeleteFunc(s.holding, func(h *listed) bool { return h == f })
	if len(f.held) > 0 {
		f.since = now
		s.holding = append(s.holding, f)
	}
}

// giveUp takes the first gap of f for loss.
func (s *sortedList) giveUp(f *listed, now time.Duration) {
	f.next = f.held[0].seq
	s.release(f, now)
}

func (s *sortedList) collect(*batch) ([]int, int, error) {
	names := s.out
	s.out = s.out[:0]
	return names, len(names), nil
}

func (s *sortedList) flush() {
	for len(s.holding) > 0 {
		s.giveUp(s.holding[0], 0)
	}
}

func (s *sortedList) state() (int, error) { return s.maxHeld, nil }
