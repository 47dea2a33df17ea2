package resequencer

import (
	"testing"
	"time"

	"weft/flowcell"
)

const ms = time.Millisecond

func tuple(n int) flowcell.FiveTuple {
	return flowcell.FiveTuple{SrcPort: uint16(n), DstPort: 80, Proto: flowcell.ProtoTCP}
}

// data is a segment of 100 bytes in flow 1 at 100 times n.
func data(n int) Segment {
	return Segment{Flow: tuple(1), Seq: uint32(100 * n), Payload: 100, Flags: flowcell.FlagACK, Size: 140}
}

// with returns s with more flags.
func with(s Segment, flags uint8) Segment {
	s.Flags |= flags
	return s
}

// of returns s in another flow.
func of(flow int, s Segment) Segment {
	s.Flow = tuple(flow)
	return s
}

// at returns s with another place in the sequence.
func at(seq uint32, payload int, s Segment) Segment {
	s.Seq, s.Payload = seq, payload
	return s
}

// step is one call and what it must deliver, in letters: packets are named
// a, b, c ... in the order in which they are pushed.
type step struct {
	now    time.Duration
	push   *Segment
	expire bool
	want   string
}

func push(now time.Duration, s Segment, want string) step { return step{now, &s, false, want} }
func expire(now time.Duration, want string) step          { return step{now, nil, true, want} }

// run plays steps and returns the counters.
func run(t *testing.T, c Config, steps ...step) (*Buffer[byte], Stats) {
	t.Helper()
	b := New[byte](c)
	name := byte('a')
	for i, s := range steps {
		var out []byte
		if s.expire {
			out = b.Expire(s.now, nil)
		} else {
			out = b.Push(*s.push, name, s.now, nil)
			name++
		}
		if string(out) != s.want {
			t.Errorf("step %d: delivers %q, want %q", i, out, s.want)
		}
	}
	return b, b.Stats()
}
