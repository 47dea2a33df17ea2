package reorder

import (
	"encoding/binary"
	"testing"
	"time"

	"weft/flowcell"
)

// What is parsed is what is given to those who need not parse.
func TestFill_bytesAndSegmentsAgree(t *testing.T) {
	in := []arrival{{0, 0, 0}, {4095, 1, 77}, {4096, 1 << 30, 0xffff}, {maxFlows - 1, 5, 1}}
	b := newBatch(false)
	b.fill(in, 0, len(in))
	if len(b.names) != 4 || b.names[3] != 3 || b.now != 4*1200*time.Nanosecond {
		t.Fatalf("names %v at %v", b.names, b.now)
	}
	flows := make(map[flowcell.FiveTuple]bool)
	for i, want := range b.segments {
		var got flowcell.Packet
		if err := got.Parse(b.raw[i]); err != nil || got != want {
			t.Errorf("packet %d: parsed %+v, given %+v, %v", i, got, want, err)
		}
		if hl := int(b.raw[i][32] >> 4 * 4); hl != 32 || binary.BigEndian.Uint32(b.raw[i][24:]) != in[i].segment*1448 {
			t.Errorf("packet %d: TCP header of %d bytes, sequence %d", i, hl, got.Seq)
		}
		flows[want.Flow] = true
	}
	if len(flows) != 4 {
		t.Errorf("%d flows, want 4", len(flows))
	}
}

func TestFill_takesABatch(t *testing.T) {
	in := inOrder(1, 100, nil)
	b := newBatch(false)
	b.fill(in, 0, 100)
	if len(b.names) != 64 || b.now != 64*interval {
		t.Errorf("%d packets at %v", len(b.names), b.now)
	}
	b.fill(in, 64, 90)
	if len(b.names) != 26 || b.names[0] != 64 || b.segments[25].Seq != 89*1448 || b.now != 90*interval {
		t.Errorf("%d packets from %d at %v", len(b.names), b.names[0], b.now)
	}
}
