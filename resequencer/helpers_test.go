package resequencer

import (
	"testing"
	"time"

	"weft/flowcell"
	"weft/internal/slowtest"
)

const ms = time.Millisecond

func tuple(n int) flowcell.FiveTuple {
	return flowcell.FiveTuple{SrcPort: uint16(n), DstPort: 80, Proto: flowcell.ProtoTCP}
}

// data is a segment of 100 bytes in flow 1 at 100 times n.
func data(n int) flowcell.Packet {
	return flowcell.Packet{Flow: tuple(1), Seq: uint32(100 * n), Payload: 100, Flags: flowcell.FlagACK, Length: 140}
}

// with returns s with more flags.
func with(s flowcell.Packet, flags uint8) flowcell.Packet {
	s.Flags |= flags
	return s
}

// of returns s in another flow.
func of(flow int, s flowcell.Packet) flowcell.Packet {
	s.Flow = tuple(flow)
	return s
}

// at returns s with another place in the sequence.
func at(seq uint32, payload int32, s flowcell.Packet) flowcell.Packet {
	s.Seq, s.Payload = seq, payload
	return s
}

// in returns s as a segment of a flowcell.
func in(cell uint16, index uint8, s flowcell.Packet) flowcell.Packet {
	s.ID = uint16(flowcell.MakeNumber(cell, index))
	return s
}

// step is one call and what it must deliver, in letters: packets are named
// a, b, c ... in the order in which they are pushed.
type step struct {
	now    time.Duration
	push   *flowcell.Packet
	expire bool
	want   string
}

func push(now time.Duration, s flowcell.Packet, want string) step { return step{now, &s, false, want} }
func expire(now time.Duration, want string) step                  { return step{now, nil, true, want} }

// script plays steps and returns the counters.
func script(t *testing.T, c Config, list ...step) (*Buffer[byte], Stats) {
	t.Helper()
	b := New[byte](c)
	playSteps(t, b, list...)
	return b, b.Stats()
}

func playSteps(t *testing.T, b *Buffer[byte], list ...step) {
	t.Helper()
	name := byte('a')
	for i, s := range list {
		var out []byte
		if s.expire {
			out = b.Expire(s.now, nil)
		} else {
			out = b.Push(s.push, name, s.now, nil)
			name++
		}
		if string(out) != s.want {
			t.Errorf("step %d: delivers %q, want %q", i, out, s.want)
		}
	}
}

// fewer is how many streams are tried in a small run. The race detector, which finds nothing
// in one goroutine, makes each slow.
func fewer(n int) int {
	if slowtest.Small() {
		return n / 5
	}
	return n
}
