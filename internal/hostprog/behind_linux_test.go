package hostprog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/link"
	"weft/topology"
)

var (
	insideHere = netip.MustParseAddr("10.244.0.7")
	insideFar  = netip.MustParseAddr("10.244.9.9")
	behindHere = netip.MustParsePrefix("10.244.0.0/24")
	behindFar  = netip.MustParsePrefix("10.244.9.0/24")
)

// newBehindTest is an uplinkTest of a host with containers, as the last host of the fabric has.
func newBehindTest(t *testing.T) *uplinkTest {
	t.Helper()
	u := newUplinkTest(t)
	var err error
	if u.cfg.Forwarded, err = NewForwarded(0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.cfg.Forwarded.Close() })
	u.cfg.Behind = []Behind{{behindHere, u.cfg.Addresses[0]}, {behindFar, topLast(u.cfg)}}
	u.attach(t)
	return u
}

// segment is TCP with options, whose checksum is right.
func segment(src, dst netip.Addr, flags byte, options, payload []byte) []byte {
	tcp := append([]byte{0x12, 0x34, 0, 80, 1, 2, 3, 4, 5, 6, 7, 8, byte(5+len(options)/4) << 4, flags, 1, 0, 0, 0, 0, 0}, options...)
	tcp = append(tcp, payload...)
	binary.BigEndian.PutUint16(tcp[16:], ^kerneltest.OnesSum(pseudo(src, dst, tcp)))
	return kerneltest.IPv4{ID: 1, Frag: 0x4000, TTL: 9, Protocol: 6, Src: src, Dst: dst}.Bytes(tcp)
}

func pseudo(src, dst netip.Addr, tcp []byte) []byte {
	return slices.Concat(src.AsSlice(), dst.AsSlice(), []byte{0, 6, byte(len(tcp) >> 8), byte(len(tcp))}, tcp, make([]byte, len(tcp)%2))
}

// leaves sends a packet, and returns what comes out, and of that what is inside the outer header;
// nil if there is none.
func (u *uplinkTest) leaves(t *testing.T, packet []byte) (outer, inner []byte) {
	t.Helper()
	u.out.Send(t, packet)
	b := make([]byte, 2000)
	for {
		n, from, err := unix.Recvfrom(u.in.FD, b, 0)
		if err != nil {
			t.Fatalf("nothing came out: %v", err)
		}
		if from.(*unix.SockaddrLinklayer).Pkttype == unix.PACKET_OUTGOING || n < 34 || b[12] != 8 || b[13] != 0 {
			continue
		}
		switch b[14+9] {
		case 4:
			return b[14:34], b[34:n]
		case 6:
			return b[14:n], nil
		}
	}
}

// What is behind this host is sprayed, to hosts and to what is behind them, and nothing else is.
func TestSpray_behind(t *testing.T) {
	u := newBehindTest(t)
	own, far := u.cfg.Addresses[0], topLast(u.cfg)
	for _, c := range []struct {
		src, dst netip.Addr
		sprayed  bool
	}{
		{insideHere, far, true}, {insideHere, insideFar, true}, {own, insideFar, true},
		{netip.MustParseAddr("10.244.1.7"), far, false}, {netip.MustParseAddr("172.17.0.2"), far, false},
		{insideHere, netip.MustParseAddr("10.244.8.1"), false},
	} {
		outer, inner := u.leaves(t, segment(c.src, c.dst, 0x10, nil, []byte("data")))
		if (inner != nil) != c.sprayed {
			t.Errorf("%v to %v: sprayed %t, want %t", c.src, c.dst, inner != nil, c.sprayed)
			continue
		}
		if to, _ := netip.AddrFromSlice(outer[16:20]); inner != nil && (netip.AddrFrom4([4]byte(outer[12:])) != c.src || !slices.Contains(cores(u.cfg.Topology), to)) {
			t.Errorf("%v to %v: outer header %x", c.src, c.dst, outer)
		}
	}
}

func cores(t *topology.Topology) (list []netip.Addr) {
	for n := range t.Nodes() {
		if n.Layer == topology.LayerCore {
			list = append(list, n.Addr)
		}
	}
	return list
}

// Paths that the host avoids, and a rack that is plain, are so for what is behind it, too.
func TestSpray_behindFollowsItsHost(t *testing.T) {
	u := newBehindTest(t)
	far := topLast(u.cfg)
	packet := segment(insideHere, insideFar, 0x10, nil, []byte("data"))
	only := cores(u.cfg.Topology)[2]
	top := u.cfg.Topology
	var avoided []topology.Avoided
	set := top.PathsTo(u.cfg.Self, far)
	for n := range set.Count() {
		if set.Addr(n) != only {
			avoided = append(avoided, topology.Avoided{Src: u.cfg.Self, Dst: far, Path: n})
		}
	}
	top = top.Avoiding(avoided...)
	if err := u.spray.SetTopology(top); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if outer, inner := u.leaves(t, packet); inner == nil || netip.AddrFrom4([4]byte(outer[16:])) != only {
			t.Fatalf("outer header %x, want to %v", outer, only)
		}
	}
	rack, _ := top.RackAt(far)
	for _, plain := range []bool{true, false} {
		if err := u.spray.SetPlain(func(p netip.Prefix) bool { return plain && p == top.RackOf(rack) }); err != nil {
			t.Fatal(err)
		}
		if _, inner := u.leaves(t, packet); (inner == nil) != plain {
			t.Errorf("plain %t, and sprayed %t", plain, inner != nil)
		}
	}
}

// Connections are noted from the first acknowledgement on, and their MSS leaves room for the outer
// header.
func TestSpray_notesAndClamps(t *testing.T) {
	u := newBehindTest(t)
	remotes := func() int {
		t.Helper()
		u.cfg.Forwarded.next = u.cfg.Forwarded.next.AddDate(-1, 0, 0)
		list, err := u.cfg.Forwarded.Remotes()
		if err != nil {
			t.Fatal(err)
		}
		if len(list) > 0 && !slices.Equal(list, []netip.Addr{insideFar}) {
			t.Fatalf("other ends %v, want %v", list, insideFar)
		}
		return len(list)
	}
	mss := func(offered uint16, flags byte) uint16 {
		t.Helper()
		_, inner := u.leaves(t, segment(insideHere, insideFar, flags, []byte{2, 4, byte(offered >> 8), byte(offered), 4, 2, 1, 1}, nil))
		if inner == nil || kerneltest.OnesSum(pseudo(insideHere, insideFar, inner[20:])) != 0xffff {
			t.Fatalf("wrong checksum, or plain: %x", inner)
		}
		return binary.BigEndian.Uint16(inner[42:])
	}
	for _, c := range []struct {
		offered, want uint16
		flags         byte
	}{{1460, 1440, 2}, {1460, 1440, 0x12}, {1441, 1440, 2}, {1440, 1440, 2}, {536, 536, 2}, {1460, 1460, 0x10}} {
		if got := mss(c.offered, c.flags); got != c.want {
			t.Errorf("MSS %d, flags %#x: %d, want %d", c.offered, c.flags, got, c.want)
		}
		if n := remotes(); (n > 0) != (c.flags == 0x10) {
			t.Errorf("flags %#x: %d other ends", c.flags, n)
		}
	}
	top := u.cfg.Topology
	rack, _ := top.RackAt(topLast(u.cfg))
	if err := u.spray.SetNarrow(map[netip.Prefix]int{top.RackOf(rack): 1400}); err != nil {
		t.Fatal(err)
	}
	if got := mss(1460, 2); got != 1360 {
		t.Errorf("towards a rack of 1400 bytes: MSS %d, want 1360", got)
	}
	for _, c := range []struct {
		bytes   int
		sprayed bool
	}{{1400, true}, {1401, false}, {1500, false}} {
		if _, inner := u.leaves(t, segment(insideHere, insideFar, 0x10, nil, make([]byte, c.bytes-40))); (inner != nil) != c.sprayed {
			t.Errorf("%d bytes: sprayed %t, want %t", c.bytes, inner != nil, c.sprayed)
		}
	}
	if st, err := u.spray.Stats(); err != nil || st.ForwardedLong != 2 || st.TooLong != 0 || st.Forwarded != 1 {
		t.Errorf("%+v, %v", st, err)
	}
}

// Where it is known what a host forwards, packets behind a hole go to the reader if their connection
// is noted, also where the host listens at the port, as Docker's proxy does, and to the kernel if
// nobody here takes part in it.
func TestOrder_forwarded(t *testing.T) {
	for _, six := range []bool{false, true} {
		t.Run(fmt.Sprintf("IPv6 %t", six), func(t *testing.T) { orderForwarded(t, six) })
	}
}

func orderForwarded(t *testing.T, six bool) {
	o := newOrderTest(t)
	table, err := NewForwarded(16 << 20) // a smaller one
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	from, to, other := orderFrom, orderTo, orderTo6
	if six {
		from, to, other = orderFrom6, orderTo6, orderTo
	}
	former := o.order
	err = kernel.InNamespace(o.near, func() (err error) {
		o.order, err = AttachOrder(OrderConfig{Uplink: "p0", Addresses: []netip.Addr{other}, Behind: []netip.Prefix{netip.PrefixFrom(to, to.BitLen())}, Forwarded: table})
		if err != nil {
			return err
		}
		o.reader.Close()
		if o.reader, err = link.OpenPacket(link.PacketConfig{Interface: "p0", FilterFD: o.order.Filter()}); err != nil {
			return err
		}
		l, err := net.Listen("tcp", netip.AddrPortFrom(to, 80).String())
		if err == nil {
			t.Cleanup(func() { l.Close() })
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	another := o.order
	t.Cleanup(func() { another.Close() })
	if err := former.Close(); err != nil {
		t.Fatal(err)
	}
	o.alive(t, true)
	const nobodys, real = 1 << 6, 1 << 7 // of bpf/order.c
	for i, c := range []struct {
		noted    bool
		to       uint16
		known    byte
		diverted bool
	}{{false, 81, nobodys, false}, {true, 81, real, true}, {false, 80, 0, true}, {true, 80, real, true}} {
		s := orderSegment{six: six, port: uint16(5000 + i), to: c.to, payload: 100}
		if c.noted {
			key := connectionKey{Remote: from.As16(), Local: to.As16()}
			binary.BigEndian.PutUint16(key.Ports[:], s.port)
			binary.BigEndian.PutUint16(key.Ports[2:], s.to)
			if err := table.m.Put(key, uint32(1)); err != nil {
				t.Fatal(err)
			}
		}
		if o.arrive(t, s.bytes()) {
			t.Fatalf("%+v: the first packet is diverted", c)
		}
		n, ok := o.order.Find(s.tuple())
		if !ok {
			t.Fatalf("%+v: the program has no such flow", c)
		}
		s.seq = 200
		if got := o.arrive(t, s.bytes()); got != c.diverted {
			t.Errorf("%+v: behind a hole: diverted %t", c, got)
		}
		var rest [4]byte
		binary.NativeEndian.PutUint32(rest[:], o.order.flows[n].rest.Load())
		if known := rest[1] & (nobodys | real); known != c.known {
			t.Errorf("%+v: the program knows %#x of the flow, want %#x", c, known, c.known)
		}
	}
}

// What is behind this host is sprayed in IPv6, too, by all paths alike, from its own address. Its
// connections are noted, and their MSS leaves room for the outer header.
func TestSpray6_behind(t *testing.T) {
	kerneltest.NeedRoot(t)
	here, far := netip.MustParseAddr("fd00:244::7"), netip.MustParseAddr("fd00:244:9::9")
	table, err := NewForwarded(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	s := newSix(t, "drb", func(c *SprayConfig) {
		c.Forwarded = table
		c.Behind = []Behind{{netip.PrefixFrom(here, 64).Masked(), c.Addresses[1]}}
		mine, _ := c.Topology6.RackAt(c.Addresses[1])
		for rack := range c.Topology6.Racks() {
			if rack != mine {
				c.Behind = append(c.Behind, Behind{netip.PrefixFrom(far, 64).Masked(), c.Topology6.RackPrefixesOf(rack, true)[0].Addr().Next()})
				break
			}
		}
	})
	hops := byte(30)
	segment := func(src, dst netip.Addr, flags byte, options []byte, payload int) []byte {
		tcp := append([]byte{0x12, 0x34, 0, 80, 1, 2, 3, 4, 5, 6, 7, 8, byte(5+len(options)/4) << 4, flags, 1, 0, 0, 0, 0, 0}, options...)
		tcp = append(tcp, make([]byte, payload)...)
		binary.BigEndian.PutUint16(tcp[16:], ^kerneltest.OnesSum(pseudo(src, dst, tcp)))
		hops++ // by which the packet is known
		return kerneltest.IPv6{Label: 0x5cafe, Next: 6, Hops: hops, Src: src, Dst: dst}.Bytes(tcp)
	}
	leaves := func(packet []byte) (outer, inner []byte) {
		t.Helper()
		if got := s.sent(t, packet); got[6] == 41 {
			return got[:40], got[40:]
		}
		return nil, nil
	}
	took := make(map[netip.Addr]int)
	for range 2 * len(s.order) {
		packet := segment(here, far, 0x10, nil, 100)
		outer, inner := leaves(packet)
		if inner == nil || !bytes.Equal(inner, packet) || netip.AddrFrom16([16]byte(outer[8:])) != here {
			t.Fatalf("%v to %v left as %x, %x", here, far, outer, inner)
		}
		took[netip.AddrFrom16([16]byte(outer[24:]))]++
	}
	for _, bounce := range s.order {
		if took[bounce] != 2 {
			t.Errorf("%d packets by %v, want 2: %v", took[bounce], bounce, took)
		}
	}
	for _, c := range []struct {
		src, dst netip.Addr
		bytes    int
		sprayed  bool
	}{
		{here, s.dst, 100, true}, {s.src, far, 100, true}, {netip.MustParseAddr("fd00:244:1::7"), far, 100, false}, {here, netip.MustParseAddr("fd00:244:8::7"), 100, false},
		{here, far, 1460, true}, {here, far, 1461, false},
	} {
		if _, inner := leaves(segment(c.src, c.dst, 0x10, nil, c.bytes-60)); (inner != nil) != c.sprayed {
			t.Errorf("%+v: sprayed %t", c, inner != nil)
		}
	}
	for _, c := range []struct{ offered, want uint16 }{{1440, 1400}, {1401, 1400}, {1400, 1400}, {1220, 1220}} {
		_, inner := leaves(segment(here, far, 0x12, []byte{2, 4, byte(c.offered >> 8), byte(c.offered), 4, 2, 1, 1}, 0))
		if inner == nil || kerneltest.OnesSum(pseudo(here, far, inner[40:])) != 0xffff {
			t.Fatalf("MSS %d: plain, or a wrong checksum: %x", c.offered, inner)
		}
		if got := binary.BigEndian.Uint16(inner[62:]); got != c.want {
			t.Errorf("MSS %d becomes %d, want %d", c.offered, got, c.want)
		}
	}
	remotes, err := table.Remotes()
	slices.SortFunc(remotes, netip.Addr.Compare)
	want := []netip.Addr{s.dst, far}
	slices.SortFunc(want, netip.Addr.Compare)
	if err != nil || !slices.Equal(remotes, want) {
		t.Errorf("connections with %v, %v, want %v", remotes, err, want)
	}
	if st, err := s.spray.Stats(); err != nil || st.ForwardedLong != 1 || st.Forwarded != 2 {
		t.Errorf("%+v, %v", st, err)
	}
}
