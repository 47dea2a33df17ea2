package hostprog

import (
	"encoding/binary"
	"slices"
	"testing"
)

// carried sends n bytes over a connection of the kernel's TCP. It returns all packets
// that left, in their order, as the oracle must see them, and the program's counts of
// them. It starts again if the order was disturbed: a queue behind the program dropped a
// packet, two processors swapped two, or the last acknowledgement came late.
func (s *sprayed) carried(t *testing.T, n int) ([][]byte, SprayStats) {
	t.Helper()
	for range 5 {
		before := s.stats(t)
		s.cubic(t, n)
		packets := s.gathered(t)
		counted, came := s.stats(t).since(before), uint64(0)
		inOrder := slices.IsSortedFunc(packets, func(a, b []byte) int { return int(int32(s.tcpSeq(a) - s.tcpSeq(b))) })
		for _, p := range packets {
			segments, _ := s.segmentsOf(p)
			came += segments
		}
		if came == counted.Encapsulated && inOrder {
			return packets, counted
		}
		t.Logf("%d segments left and %d came in, in order: %t; once more", counted.Encapsulated, came, inOrder)
	}
	t.Fatal("no transfer came in whole")
	return nil, SprayStats{}
}

// tcpSeq is the sequence number inside an encapsulated packet.
func (s *sprayed) tcpSeq(outer []byte) uint32 {
	return binary.BigEndian.Uint32(outer[s.overhead()+24:])
}

// since is what was counted after an earlier look, of the same bouncing switches.
func (s SprayStats) since(before SprayStats) SprayStats {
	for _, c := range []struct{ now, before *uint64 }{
		{&s.Encapsulated, &before.Encapsulated}, {&s.Passed, &before.Passed}, {&s.Refused, &before.Refused},
		{&s.NoPath, &before.NoPath}, {&s.TooLong, &before.TooLong}, {&s.Malformed, &before.Malformed},
		{&s.Flows, &before.Flows}, {&s.Flowcells, &before.Flowcells}, {&s.Chosen, &before.Chosen},
		{&s.Seen, &before.Seen}, {&s.Plain, &before.Plain}, {&s.Unattended, &before.Unattended}, {&s.Broken, &before.Broken},
	} {
		*c.now -= *c.before
	}
	s.Bounces = slices.Clone(s.Bounces)
	for i := range s.Bounces {
		for _, b := range before.Bounces {
			if now := &s.Bounces[i]; b.Addr == now.Addr {
				now.Packets -= b.Packets
				now.Bytes -= b.Bytes
				now.Flowcells -= b.Flowcells
			}
		}
	}
	return s
}

// arrived returns n packets with the IDs from 0 on, by ID: processors that take
// turns at sending may swap two.
func (s *sprayed) arrived(t *testing.T, n int) [][]byte {
	t.Helper()
	all := make([][]byte, n)
	for i := range n {
		p := s.receive(t)
		id := int(binary.BigEndian.Uint16(p[s.overhead()+4:]))
		if id >= n || all[id] != nil {
			t.Fatalf("packet %d has the ID %d:\n%s", i, id, dump(p))
		}
		all[id] = p
	}
	return all
}
