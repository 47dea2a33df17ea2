package reorder

import (
	"slices"
	"testing"
)

// Sixty-four flows are eight in each bucket, of which one call of Flush
// delivers the first.
func TestGvisorGRO_flushEmptiesBuckets(t *testing.T) {
	in := bursts(uniform)(64, 0, nil)
	b := newBatch(false)
	b.fill(in, 0, 64)
	s := newGvisorGRO()
	s.prepare(b)
	s.push(b)
	names, pieces, err := s.collect(b)
	slices.Sort(names)
	if err != nil || pieces != 64 || len(names) != 64 || names[0] != 0 || names[63] != 63 {
		t.Errorf("%d packets in %d pieces: %v", len(names), pieces, err)
	}
}

func TestGvisorGRO_collectTellsMergedApart(t *testing.T) {
	in := []arrival{{0, 0, 0}, {0, 1, 0}, {1, 9, 0}, {0, 2, 0}, {0, 4, 0}, {1, 8, 0}}
	b := newBatch(false)
	b.fill(in, 0, len(in))
	s := newGvisorGRO()
	s.prepare(b)
	s.push(b)
	names, pieces, err := s.collect(b)
	if err != nil || pieces != 4 || !slices.Equal(names[:4], []int{0, 1, 3, 2}) {
		t.Errorf("%v in %d pieces: %v; want 0, 1 and 3 as one, before 4 shows a gap", names, pieces, err)
	}
	// Then only the last of each flow was held.
	if held, err := s.state(); held != 2*packetSize || err != nil {
		t.Errorf("%d bytes held when all had come: %v", held, err)
	}
}
