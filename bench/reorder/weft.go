package reorder

import (
	"fmt"

	"weft/flowcell"
	"weft/resequencer"
)

// weftBuffer is weft's own.
type weftBuffer struct {
	*resequencer.Buffer[int]
	parsed  []flowcell.Packet
	out     []int
	batched bool // take all packets of a batch at once
	flows   int
}

// newWeftBuffer returns a Buffer of the default configuration, save that it
// remembers all flows.
func newWeftBuffer(d resequencer.Discipline, flows int, batched bool) *weftBuffer {
	return &weftBuffer{
		Buffer:  resequencer.New[int](resequencer.Config{Discipline: d, Flows: remembered(flows)}),
		parsed:  make([]flowcell.Packet, batchSize),
		batched: batched,
		flows:   flows,
	}
}

// remembered is the Config.Flows that so many flows need.
func remembered(flows int) int { return max(flows, resequencer.DefaultFlows) }

func (*weftBuffer) prepare(*batch) {}

func (s *weftBuffer) push(b *batch) {
	segments := b.segments
	if b.parse {
		segments = parse(b, s.parsed)
	}
	if s.batched {
		s.out = s.PushBatch(segments, b.names, b.now, s.out)
	} else {
		for i := range segments {
			s.out = s.Push(&segments[i], b.names[i], b.now, s.out)
		}
	}
	if at, ok := s.NextDeadline(); ok && at <= b.now {
		s.out = s.Expire(b.now, s.out)
	}
}

// parse reads the headers of b into segments, which are long enough.
func parse(b *batch, segments []flowcell.Packet) []flowcell.Packet {
	n := 0
	for i := range b.names {
		if segments[n].Parse(b.raw[i]) == nil {
			n++
		}
	}
	return segments[:n]
}

func (s *weftBuffer) collect(*batch) ([]int, int, error) {
	names := s.out
	s.out = s.out[:0]
	return names, len(names), nil
}

func (s *weftBuffer) flush() { s.out = s.Flush(s.out) }

func (s *weftBuffer) state() (int, error) {
	st := s.Stats()
	if st.Flows != s.flows || st.FlowsEvicted != 0 {
		return 0, fmt.Errorf("remembers %d flows of %d, and forgot %d", st.Flows, s.flows, st.FlowsEvicted)
	}
	return st.MaxHeldBytes, nil
}
