package hostprog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/encap"
	"weft/flowcell"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/link"
)

const longSuper = 196608

// longs is newSprayed for super-segments of up to longSuper bytes.
func longs(t *testing.T) *sprayed {
	t.Helper()
	s := newSprayedBy(t, sprayLab(t), "presto", encap.CarrierIPIP, func(c *SprayConfig) {
		c.Cut, c.SuperBytes = []netip.Addr{c.Addresses[0]}, longSuper
	})
	if most, why := s.spray.Supers(); most != longSuper {
		t.Skipf("super-segments of %d bytes: %s", most, why)
	}
	if err := unix.SetsockoptInt(s.out.FD, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err != nil {
		t.Skipf("packet sockets with offloads: %v", err)
	}
	if err := errors.Join(unix.SetsockoptInt(s.out.FD, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 4<<20),
		unix.SetsockoptInt(s.far.FD, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 4<<20)); err != nil {
		t.Fatal(err)
	}
	return s
}

// limit is the uplink's limit of super-segments.
func (s *sprayed) limit(t *testing.T) (n uint32) {
	t.Helper()
	err := s.lab.Do(s.src.ID, func() error {
		l, err := netlink.LinkByName("p0")
		if err == nil {
			n = l.Attrs().GSOIPv4MaxSize
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// sendLong sends a super-segment of so many whole segments of 1000 bytes, which begins at seq.
func (s *sprayed) sendLong(t *testing.T, seq uint32, segments int) (packet []byte) {
	t.Helper()
	h := kerneltest.IPv4{ID: 7, Frag: 0x4000, TTL: 64, Protocol: 6, Src: s.src.Addr, Dst: s.dst.Addr}
	l4 := append([]byte{0x12, 0x34, 0, 99, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 0, 0, 0, 0, 0, 0}, make([]byte, segments*1000)...)
	binary.BigEndian.PutUint32(l4[4:], seq)
	for i := range l4[20:] {
		l4[20+i] = byte(i * 7 >> 3)
	}
	packet = h.Bytes(l4)
	if len(packet) > 65535 {
		packet[2], packet[3] = 0, 0
	}
	binary.BigEndian.PutUint16(packet[10:], 0)
	binary.BigEndian.PutUint16(packet[10:], ^kerneltest.OnesSum(packet[:20]))
	if err := s.sendSuper(t, packet, 1, 40, 1000, 16); err != nil {
		t.Fatal(err)
	}
	return packet
}

// receiveLong is receive of packets of any length.
func (s *sprayed) receiveLong(t *testing.T, b []byte) []byte {
	t.Helper()
	for {
		n, from, err := unix.Recvfrom(s.far.FD, b, 0)
		if err != nil {
			t.Fatalf("receive: %v; counted %+v", err, s.stats(t))
		}
		if from.(*unix.SockaddrLinklayer).Pkttype != unix.PACKET_OUTGOING && binary.BigEndian.Uint16(b[12:]) == unix.ETH_P_IP {
			return b[kernel.EthernetHeader:n]
		}
	}
}

// Super-segments of more than 64 KB leave whole, without a length in either header, each as a
// flowcell of its own on the path after the last one's, whatever the number of segments. Those
// that become too long with the outer header alone keep the inner length.
func TestSpray_longSupers(t *testing.T) {
	s := longs(t)
	if n := s.limit(t); n != longSuper {
		t.Errorf("gso_ipv4_max_size is %d", n)
	}
	order := s.oracle.table[rackOf(s.dst.Addr)].order
	b := make([]byte, 1<<18)
	step, at, cell := -1, uint32(1), uint16(0)
	var want SprayStats
	bounces := make(map[netip.Addr]Traffic)
	counts := []int{131, 131, 190, 132, 128, 127, 65, 130, 66, 65, 131, 64}
	for i, segments := range counts {
		sent := s.sendLong(t, at, segments)
		got := s.receiveLong(t, b)
		outer, inner := got[:20], got[20:]
		if len(got) != len(sent)+20 || !slices.Equal(inner[20:36], sent[20:36]) || !slices.Equal(inner[40:], sent[40:]) {
			t.Fatalf("super-segment %d: %d bytes of %d\n%s", i, len(got), len(sent), dump(got[:80]))
		}
		total := func(n int) uint16 {
			if n > 65535 {
				return 0
			}
			return uint16(n)
		}
		if binary.BigEndian.Uint16(outer[2:]) != total(len(got)) || binary.BigEndian.Uint16(inner[2:]) != total(len(sent)) ||
			kerneltest.OnesSum(outer) != 0xffff || kerneltest.OnesSum(inner[:20]) != 0xffff {
			t.Errorf("super-segment %d of %d bytes:\n%s", i, len(sent), dump(got[:40]))
		}
		to := slices.Index(order, pathWord(outer[16:20]))
		number := flowcell.Number(binary.BigEndian.Uint16(inner[4:]))
		if i > 0 && (to != (step+1)%len(order) || number.Index() != 0 || number.Cell() != (cell+uint16(counts[i-1]+63)>>6)%flowcell.Cells) {
			t.Errorf("super-segment %d: step %d after %d, flowcell %d.%d after %d", i, to, step, number.Cell(), number.Index(), cell)
		}
		step, cell, at = to, number.Cell(), at+uint32(segments)*1000
		a, n := netip.AddrFrom4([4]byte(outer[16:20])), uint64(segments)
		bounces[a] = Traffic{bounces[a].Packets + n, bounces[a].Bytes + n*1060}
		want.Encapsulated += n
		if len(got) > 65535 {
			want.Long.Sent, want.Long.Bytes = want.Long.Sent+1, want.Long.Bytes+n*1000
		}
	}
	s.sendLong(t, at-64_000, 64) // again
	s.receiveLong(t, b)
	want.Encapsulated, want.Long.Again = want.Encapsulated+64, 64_000
	st := s.stats(t)
	if st.Encapsulated != want.Encapsulated || st.Long != want.Long || st.Malformed+st.TooLong+st.Refused > 0 {
		t.Errorf("counted %+v, want %+v", st, want)
	}
	short := 0
	for _, c := range st.Bounces {
		if n := bounces[c.Addr]; c.Traffic != n {
			short++ // the one sent again
		}
	}
	if short != 1 {
		t.Errorf("by path %+v, want %v and 64 packets more by one", st.Bounces, bounces)
	}

	// Now there are none any more: what comes all the same the kernel cuts behind the program.
	if err := s.spray.ShortSupers(); err != nil {
		t.Fatal(err)
	}
	if most, _ := s.spray.Supers(); most != kernel.MaxSuper || s.limit(t) != kernel.MaxSuper {
		t.Errorf("super-segments of %d bytes, gso_ipv4_max_size %d", most, s.limit(t))
	}
	if mended, err := s.spray.Repair(); err != nil || mended != nil {
		t.Errorf("mended %q, %v", mended, err)
	}
	s.sendLong(t, at, 131)
	for i := range 131 {
		if got := s.receiveLong(t, b); len(got) != 1060 || binary.BigEndian.Uint16(got[2:]) != 1060 || binary.BigEndian.Uint32(got[44:]) != at+uint32(i)*1000 {
			t.Fatalf("segment %d:\n%s", i, dump(got[:60]))
		}
	}
	if err := s.spray.Close(); err != nil {
		t.Fatal(err)
	}
}

// The uplink gets back what it had, also after a crash, and a program that wants none of them
// takes away what its predecessor wanted.
func TestAttachSpray_restoresLongSupers(t *testing.T) {
	s := longs(t)
	if err := s.spray.Close(); err != nil {
		t.Fatal(err)
	}
	was := s.limit(t)
	cfg := s.config(t, "presto")
	cfg.Cut, cfg.SuperBytes = cfg.Addresses, longSuper
	s.attach(t, cfg)
	s.spray.release() // as a crash does
	if n := s.limit(t); n != longSuper {
		t.Errorf("gso_ipv4_max_size is %d", n)
	}
	short := cfg
	short.SuperBytes = 0
	s.attach(t, short)
	if n := s.limit(t); n != was {
		t.Errorf("gso_ipv4_max_size is %d, was %d", n, was)
	}
	for name, edit := range map[string]func(*SprayConfig){
		"SRv6":   func(c *SprayConfig) { c.Carrier = encap.CarrierSRv6 },
		"no cut": func(c *SprayConfig) { c.Cut = nil },
	} {
		c := cfg
		edit(&c)
		s.attach(t, c)
		if most, why := s.spray.Supers(); most != kernel.MaxSuper || why == "" {
			t.Errorf("%s: %d bytes, %q", name, most, why)
		}
	}
	cfg.SuperBytes = kernel.MaxLongSuper + 1
	if err := s.lab.Do(s.src.ID, func() error { _, err := AttachSpray(cfg); return err }); err == nil {
		t.Errorf("%d bytes are not refused", cfg.SuperBytes)
	}
}

// The filter follows the sequence numbers of long super-segments, and gives the reader those
// behind a hole that it has room for. Of longer ones it leaves the flow to the kernel.
func TestOrder_longSupers(t *testing.T) {
	for _, room := range []int{0, longSuper} {
		t.Run(fmt.Sprintf("room for %d", room), func(t *testing.T) { orderLongs(t, room) })
	}
}

func orderLongs(t *testing.T, room int) {
	o := newOrderTestOf(t, room)
	o.sendsLong(t)
	const size = 100_000
	seg := orderSegment{port: 4000, payload: size - 40}
	next := seg
	next.seq = seg.payload32()
	ahead := next
	ahead.seq += 3 * seg.payload32()
	for i, c := range []struct {
		s        orderSegment
		diverted bool
	}{{seg, false}, {next, false}, {ahead, room > 0}} {
		if got := o.arriveLong(t, c.s); got != c.diverted {
			t.Fatalf("packet %d is diverted: %v; the program counted %+v", i, got, o.stats(t))
		}
	}
	head := seg
	head.payload = 0
	n, ok := o.order.Find(head.tuple())
	want := ahead.seq + ahead.payload32()
	if room > 0 {
		want = next.seq + next.payload32()
	}
	if !ok || o.order.Next(n) != want {
		t.Errorf("goes on at %d, want %d", o.order.Next(n), want)
	}
	if room == 0 {
		if st := o.stats(t); st.Long != 1 {
			t.Errorf("%+v", st)
		}
		return
	}
	bufs, sizes := [][]byte{make([]byte, longSuper)}, []int{0}
	o.reader.SetReadDeadline(time.Now().Add(kerneltest.Patience))
	if n, err := o.reader.ReadSuper(bufs, sizes, link.SuperHeadroom); n != 1 || err != nil || sizes[0] != size {
		t.Errorf("the reader gets %d packets, %v bytes, %v; it dropped %d, the program counted %+v", n, sizes, err, o.reader.Drops(), o.stats(t))
	}
}

// sendsLong has the neighbour send super-segments whole.
func (o *orderTest) sendsLong(t *testing.T) {
	t.Helper()
	at, err := unix.Getsockname(o.out.FD)
	if err != nil {
		t.Fatal(err)
	}
	err = kernel.InNamespace(o.ns, func() error {
		l, err := netlink.LinkByIndex(at.(*unix.SockaddrLinklayer).Ifindex)
		if err != nil {
			return err
		}
		return netlink.LinkSetGSOIPv4MaxSize(l, longSuper)
	})
	if err != nil {
		t.Skip(err)
	}
	err = errors.Join(unix.SetsockoptInt(o.out.FD, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1),
		unix.SetsockoptInt(o.out.FD, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 4<<20))
	if err != nil {
		t.Skip(err)
	}
}

func (s orderSegment) payload32() uint32 { return uint32(s.payload) }

// arriveLong is arrive of a super-segment of more than 64 KB. It waits until the program has
// decided: what else a kernel sends counts as seen, too.
func (o *orderTest) arriveLong(t *testing.T, s orderSegment) (diverted bool) {
	t.Helper()
	payload := s.payload
	s.payload = 0
	packet := append(s.bytes(), make([]byte, payload)...)
	packet[2], packet[3], packet[10], packet[11] = 0, 0, 0, 0
	binary.BigEndian.PutUint16(packet[10:], ^kerneltest.OnesSum(packet[:20]))
	before := o.stats(t)
	header := []byte{1, 1, 54, 0, 0xe8, 3, 34, 0, 16, 0} // struct virtio_net_hdr: TCP, segments of 1000 bytes
	if _, err := unix.Write(o.out.FD, slices.Concat(header, o.out.Far, o.out.Own, []byte{8, 0}, packet)); err != nil {
		t.Fatal(err)
	}
	var after OrderStats
	kerneltest.Within(t, kerneltest.Patience, "the packet to arrive", func() bool {
		after = o.stats(t)
		return decided(after) > decided(before)
	})
	if n := after.Seen - before.Seen; n > 50 { // others than this one are few
		t.Fatalf("%d packets arrived: it was cut", n)
	}
	return after.Diverted > before.Diverted
}

// decided is how many packets the program has led to the kernel or the reader for a reason.
func decided(s OrderStats) uint64 {
	return s.Straight + s.Diverted + s.Crowded + s.PassedDead + s.Long + s.Strays + s.OverBudget + s.Shed
}
