package flowcell

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

func TestNumber_isTenBitsAndSix(t *testing.T) {
	for _, c := range []struct {
		cell  uint16
		index uint8
		id    uint16
	}{
		{0, 0, 0}, {0, 62, 62}, {1, 0, 64}, {5, 7, 5*64 + 7}, {1023, 62, 0xfffe}, {1024, 3, 3}, {1029, 0, 5 * 64},
	} {
		n := MakeNumber(c.cell, c.index)
		if uint16(n) != c.id || n.Cell() != c.cell%Cells || n.Index() != c.index {
			t.Errorf("%d.%d is %04x, %d.%d", c.cell, c.index, uint16(n), n.Cell(), n.Index())
		}
	}
	if Cells != 1024 || MaxIndex != 62 {
		t.Errorf("%d cells, last index %d", Cells, MaxIndex)
	}
	// Whatever is on the wire is a Number; every 64th is none of ours.
	above := 0
	for id := range 1 << 16 {
		n := Number(id)
		if n.Index() > MaxIndex {
			above++
		} else if MakeNumber(n.Cell(), n.Index()) != n {
			t.Fatalf("%04x becomes %04x", id, uint16(MakeNumber(n.Cell(), n.Index())))
		}
	}
	if above != 1024 {
		t.Errorf("%d IDs have an index that nobody uses", above)
	}
}

// checksum is RFC 1071 §4.1 over an IPv4 header, its checksum included.
func checksum(header []byte) uint16 {
	sum := uint32(0)
	for i := 0; i < len(header); i += 2 {
		sum += uint32(header[i])<<8 | uint32(header[i+1])
	}
	for sum>>16 != 0 {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

func TestStamp_setsIDAndDFAndMendsChecksum(t *testing.T) {
	const seed = 4
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range 100_000 {
		b := tcpPacket()
		binary.BigEndian.PutUint32(b[12:], rng.Uint32()) // other sums
		binary.BigEndian.PutUint16(b[4:], uint16(rng.Uint32()))
		binary.BigEndian.PutUint16(b[6:], uint16(rng.IntN(2))<<14)
		n := Number(rng.Uint32())
		if i%3 == 0 {
			n = Number(binary.BigEndian.Uint16(b[4:])) // nothing changes
		}
		binary.BigEndian.PutUint16(b[10:], checksum(b[:20]))
		want := append([]byte(nil), b...)
		n.Stamp(b)

		binary.BigEndian.PutUint16(want[4:], uint16(n))
		binary.BigEndian.PutUint16(want[6:], 0x4000)
		binary.BigEndian.PutUint16(want[10:], 0)
		binary.BigEndian.PutUint16(want[10:], checksum(want[:20]))
		if string(b) != string(want) {
			t.Fatalf("seed %d: number %04x\ngot  %x\nwant %x", seed, uint16(n), b, want)
		}
		var p Packet
		if err := p.Parse(b); err != nil || Number(p.ID) != n || p.Fragment {
			t.Fatalf("seed %d: number %04x is parsed as %+v, %v", seed, uint16(n), p, err)
		}
	}
}

// Of an IPv6 header only the lower 16 bits of the flow label change.
func TestStamp_writesTheLabelOfIPv6(t *testing.T) {
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 100_000 {
		b := packet6(ProtoTCP, tcpSegment)
		b[1], b[2], b[3] = byte(rng.Uint32()), byte(rng.Uint32()), byte(rng.Uint32())
		n := Number(rng.Uint32())
		want := append([]byte(nil), b...)
		n.Stamp(b)
		word := binary.BigEndian.Uint32(want)
		binary.BigEndian.PutUint32(want, word&^0xffff|uint32(n))
		if string(b) != string(want) {
			t.Fatalf("seed %d: number %04x\ngot  %x\nwant %x", seed, uint16(n), b, want)
		}
		var p Packet
		if err := p.Parse(b); err != nil || Number(p.ID) != n {
			t.Fatalf("seed %d: number %04x is parsed as %+v, %v", seed, uint16(n), p, err)
		}
	}
}

func TestNumber_firstOfItsFlowcell(t *testing.T) {
	for id := range 1 << 16 {
		n := Number(id)
		if f := n.First(); f.Cell() != n.Cell() || f.Index() != 0 || f != MakeNumber(n.Cell(), 0) {
			t.Fatalf("the first of %04x is %04x", id, uint16(f))
		}
	}
}

// A kernel cuts a super-segment: it adds 1 to the ID of each.
func TestNumber_survivesSegmentation(t *testing.T) {
	c := NewCutter(uint64(1000))
	u := Unit{Kind: UnitFlowcell, Bytes: FlowcellBytes}
	for cell := range uint16(100) {
		first, _ := c.Next(u, 0, 45*1448, 45, 0)
		for i := range uint8(45) {
			n := first + Number(i)
			if n.Cell() != (1000+cell)%Cells || n.Index() != i {
				t.Fatalf("super-segment %d, segment %d: %d.%d", cell, i, n.Cell(), n.Index())
			}
		}
	}
}

func TestNumber_countAscendsAndNeverBeginsAFlowcell(t *testing.T) {
	n := Number(0xffff)
	for range 3 << 16 {
		next := n.Count()
		if d := uint16(next - n); next.Index() == 0 || d != 1 && d != 2 {
			t.Fatalf("%04x after %04x", next, n)
		}
		n = next
	}
}
