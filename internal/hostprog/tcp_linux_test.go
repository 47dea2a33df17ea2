package hostprog

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/kernel/kerneltest"
)

// gsoMaxSegs is the knob at the source's uplink.
func (s *sprayed) gsoMaxSegs(t *testing.T) (n uint32) {
	t.Helper()
	err := s.lab.Do(s.src.ID, func() error {
		link, err := netlink.LinkByName("p0")
		if err == nil {
			n = link.Attrs().GSOMaxSegs
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// gather makes the far end's packet socket hold what a transfer brings.
func (s *sprayed) gather(t *testing.T) {
	t.Helper()
	if err := unix.SetsockoptInt(s.far.FD, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20); err != nil {
		t.Fatal(err)
	}
}

// gathered returns the packets that have come from the source by now.
func (s *sprayed) gathered(t *testing.T) [][]byte {
	t.Helper()
	s.send(t, kerneltest.IPv4{ID: 0x7777, TTL: 9, Protocol: 253, Src: netip.MustParseAddr("10.99.0.1"), Dst: s.dst.Addr}.Bytes(nil), false)
	var all [][]byte
	for {
		p := s.receive(t)
		if p[9] == 253 {
			break
		}
		all = append(all, p)
	}
	if st, err := unix.GetsockoptTpacketStats(s.far.FD, unix.SOL_PACKET, unix.PACKET_STATISTICS); err != nil || st.Drops > 0 {
		t.Fatalf("the packet socket dropped %d: %v", st.Drops, err)
	}
	return all
}

// flowOf keeps a TCP connection's packets that carry data or open it; the last
// acknowledgements of a connection that closes are not numbered.
func (s *sprayed) flowOf(packets [][]byte) [][]byte {
	var flow [][]byte
	for _, p := range packets {
		if inner := p[s.overhead():]; inner[9] == 6 && (inner[33]&2 != 0 || len(inner) > 20+int(inner[32]>>4)*4) {
			flow = append(flow, p)
		}
	}
	return flow
}

// One connection of the kernel's takes the paths in digit-reversed order, packet
// by packet, and all paths alike.
func TestSpray_kernelTCPPerPacket(t *testing.T) {
	t.Run("cut by TCP", func(t *testing.T) { testKernelTCPPerPacket(t, false) })
	t.Run("cut late", func(t *testing.T) {
		kerneltest.NeedMacvlan(t)
		testKernelTCPPerPacket(t, true)
	})
}

func testKernelTCPPerPacket(t *testing.T, late bool) {
	l := sprayLab(t)
	s := newSprayed(t, l, "drb")
	s.spray.Close()
	before := s.gsoMaxSegs(t)
	cfg := s.config(t, "drb")
	cfg.PerPacketTCP, cfg.CutLate = true, late
	s.attach(t, cfg)
	want := uint32(1)
	if late {
		want = before
	}
	if is, why := s.spray.CutsLate(); is != late || why != "" {
		t.Fatalf("cut late %v, %q", is, why)
	}
	if n := s.gsoMaxSegs(t); n != want {
		t.Errorf("gso_max_segs is %d, want %d", n, want)
	}
	s.leaveRoom(t)
	s.gather(t)
	s.cubic(t, 4<<20)

	order := s.oracle.table[rackOf(s.dst.Addr)].order
	position := make(map[netip.Addr]int)
	for i, a := range order {
		position[netip.AddrFrom4(a)] = i
	}
	all := s.gathered(t)
	flow := s.flowOf(all)
	if len(flow) < 4<<20/1448 {
		t.Fatalf("%d packets seen for 4 MB", len(flow))
	}
	counts := make([]int, len(order))
	ids := make([]int, len(flow)) // of a counter that does not wrap
	id := func(p []byte) int { return int(binary.BigEndian.Uint16(p[24:])) }
	seen := make(map[int]bool) // also of what carries no data: the handshake, probes of a closed window
	for _, p := range all {
		seen[id(p)] = true
	}
	for i, p := range flow {
		s.checkOuter(t, p)
		at := position[netip.AddrFrom4([4]byte(p[16:]))]
		counts[at]++
		if i == 0 {
			continue
		}
		last := flow[i-1]
		// Packets that carry no data count as well.
		steps := (id(p) - id(last)) & 0xffff
		if want := (position[netip.AddrFrom4([4]byte(last[16:]))] + steps) % len(order); at != want {
			t.Fatalf("packet %d: step %d, want %d (%d after the last one)", i, at, want, steps)
		}
		ids[i] = ids[i-1] + int(int16(steps))
		if len(p) > 1500 {
			t.Fatalf("packet %d has %d bytes", i, len(p))
		}
	}
	// Two processors that send at once can overtake each other on the way to the
	// capture; the kernel has counted nevertheless.
	slices.Sort(ids)
	for i := 3; i+3 < len(ids); i++ {
		for missing := ids[i] + 1; missing < ids[i+1]; missing++ {
			if !seen[(id(flow[0])+missing)&0xffff] {
				t.Errorf("packet %d: the ID went on by %d", i, ids[i+1]-ids[i])
			}
		}
		if ids[i+1] == ids[i] {
			t.Errorf("packet %d: an ID came twice", i)
		}
	}
	for _, n := range counts {
		if n < len(flow)/len(order)-2 || n > len(flow)/len(order)+2 {
			t.Errorf("shares %v of %d packets", counts, len(flow))
		}
	}
	if err := s.spray.Close(); err != nil {
		t.Fatal(err)
	}
	if n := s.gsoMaxSegs(t); n != before {
		t.Errorf("gso_max_segs is %d after Close, was %d", n, before)
	}
	err := s.lab.Do(s.src.ID, func() error {
		all, err := netlink.LinkList()
		for _, l := range all {
			if strings.HasPrefix(l.Attrs().Name, "weftcut") {
				t.Errorf("%s is left after Close", l.Attrs().Name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkOuter compares a packet's outer header with what the oracle says of the
// packet inside.
func (s *sprayed) checkOuter(t *testing.T, p []byte) {
	t.Helper()
	o := s.oracle
	o.mtu = 1 << 16
	inner, way, v := o.prepare(p[s.overhead():], 1, p)
	if v != encapsulated || way.stepOf(inner, p) < 0 {
		t.Fatalf("got\n%swant, by some path,\n%s", dump(p), dump(way.wrap(inner, way.step(inner))))
	}
}

// Super-segments leave whole, and count as what a device makes of them.
func TestSpray_superSegmentsStayWhole(t *testing.T) {
	s := newSprayed(t, sprayLab(t), "presto")
	s.leaveRoom(t)
	s.gather(t)
	packets, got := s.carried(t, 4<<20)
	var want SprayStats
	whole := 0
	bounces := make(map[netip.Addr]Traffic)
	for _, p := range packets {
		s.checkOuter(t, p)
		segs, bytes := s.segmentsOf(p)
		want.Encapsulated += segs
		b := bounces[netip.AddrFrom4([4]byte(p[16:]))]
		bounces[netip.AddrFrom4([4]byte(p[16:]))] = Traffic{b.Packets + segs, b.Bytes + bytes}
		if len(p) > 1500 {
			whole++
		}
	}
	if whole < 20 {
		t.Errorf("%d super-segments in 4 MB", whole)
	}
	if got.Encapsulated != want.Encapsulated || got.TooLong+got.NoPath+got.Malformed+got.Refused != 0 {
		t.Errorf("counters %+v, want %d encapsulated", got, want.Encapsulated)
	}
	for _, b := range got.Bounces {
		if b.Traffic != bounces[b.Addr] {
			t.Errorf("%v: %+v counted, want %+v", b.Addr, b.Traffic, bounces[b.Addr])
		}
	}
}

// segmentsOf says what a packet of ours becomes on a wire of 1500 bytes.
func (s *sprayed) segmentsOf(p []byte) (n, bytes uint64) {
	header := s.overhead() + 20 + int(p[s.overhead()+32]>>4)*4 // both IP headers and TCP's
	mss := 1500 - header
	payload := len(p) - header
	segs := max(1, (payload+mss-1)/mss)
	return uint64(segs), uint64(segs*header + payload)
}
