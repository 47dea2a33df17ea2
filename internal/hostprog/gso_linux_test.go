package hostprog

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/encap"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// sendSuper sends a super-segment as a program does through a packet socket,
// which leaves it to the kernel to count the segments.
func (s *sprayed) sendSuper(t *testing.T, packet []byte, gsoType byte, headers, gsoSize, checksum uint16) error {
	t.Helper()
	hdr := make([]byte, 10) // struct virtio_net_hdr
	hdr[0] = 1              // VIRTIO_NET_HDR_F_NEEDS_CSUM
	hdr[1] = gsoType
	le := binary.LittleEndian
	le.PutUint16(hdr[2:], kernel.EthernetHeader+headers)
	le.PutUint16(hdr[4:], gsoSize)
	le.PutUint16(hdr[6:], kernel.EthernetHeader+20)
	le.PutUint16(hdr[8:], checksum)
	frame := slices.Concat(hdr, s.out.Far, s.out.Own, []byte{0x08, 0x00}, packet)
	_, err := unix.Write(s.out.FD, frame)
	return err
}

func TestSpray_superSegmentsOfUserspace(t *testing.T) {
	l := sprayLab(t)
	for _, c := range []encap.Carrier{encap.CarrierIPIP, encap.CarrierSRv6} {
		t.Run(c.String(), func(t *testing.T) {
			superSegmentsOfUserspace(t, newSprayedBy(t, l, "presto", c), c, false)
			superSegmentsOfUserspace(t, newSprayedBy(t, l, "presto", c, required), c, true)
		})
	}
}

func superSegmentsOfUserspace(t *testing.T, s *sprayed, carrier encap.Carrier, require bool) {
	if err := unix.SetsockoptInt(s.out.FD, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err != nil {
		t.Skipf("packet sockets with offloads: %v", err)
	}
	const tcpv4, udpL4, ecn = 1, 5, 0x80 // VIRTIO_NET_HDR_GSO_*
	outer := carrier.Overhead()
	mss := uint16(1460 - outer)
	// A device takes frames of up to 64 KB.
	whole := 65535 - 14 - 40 - outer
	for _, c := range []struct {
		name     string
		protocol byte
		gso      byte
		header   int // of TCP or UDP
		size     uint16
		payload  int
		segs     uint64
		tooLong  bool
		cut      bool
	}{
		{name: "TCP", protocol: 6, gso: tcpv4, header: 20, size: mss, payload: 14*int(mss) - 160, segs: 14},
		{name: "whole segments", protocol: 6, gso: tcpv4, header: 20, size: mss, payload: 10 * int(mss), segs: 10},
		{name: "options", protocol: 6, gso: tcpv4, header: 32, size: mss - 12, payload: int(mss) - 11, segs: 2},
		{name: "ECN", protocol: 6, gso: tcpv4 | ecn, header: 20, size: 1000, payload: 3001, segs: 4},
		{name: "longest that stays whole", protocol: 6, gso: tcpv4, header: 20, size: mss, payload: whole, segs: uint64((whole + int(mss) - 1) / int(mss))},
		{name: "one over 64 KB", protocol: 6, gso: tcpv4, header: 20, size: mss, payload: 65535 - 59, cut: true},
		{name: "segments too long", protocol: 6, gso: tcpv4, header: 20, size: mss + 1, payload: 20000, tooLong: true},
		{name: "segments with options too long", protocol: 6, gso: tcpv4, header: 32, size: mss - 11, payload: 20000, tooLong: true},
		{name: "UDP", protocol: 17, gso: udpL4, header: 8, size: 1000, payload: 4500, segs: 5},
		{name: "UDP too long", protocol: 17, gso: udpL4, header: 8, size: mss + 13, payload: 4500, tooLong: true},
	} {
		if c.cut { // by the kernel: TestSpray_kernelCutsByTheSameRule
			continue
		}
		h := kerneltest.IPv4{TOS: 2, ID: 64 * 77, Frag: 0x4000, TTL: 64, Protocol: c.protocol, Src: s.src.Addr, Dst: s.dst.Addr}
		l4 := make([]byte, c.header, c.header+c.payload)
		copy(l4, []byte{0x12, 0x34, 0, 99})
		checksum := uint16(6)
		if c.protocol == 6 {
			l4[12], l4[13], checksum = byte(c.header/4)<<4, 0x10, 16
		} else {
			binary.BigEndian.PutUint16(l4[4:], uint16(c.header+c.payload))
		}
		packet := h.Bytes(append(l4, make([]byte, c.payload)...))
		before := s.stats(t)
		err := s.sendSuper(t, packet, c.gso, uint16(20+c.header), c.size, checksum)
		if c.tooLong {
			before.TooLong++
			if require && err != unix.ENOBUFS {
				t.Errorf("%s: the sender was told %v, want ENOBUFS", c.name, err)
			}
			if !require && err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if !require {
				if got := s.receive(t); !slices.Equal(got, packet) {
					t.Fatalf("%s: %d bytes\n%swant it as it was\n%s", c.name, len(got), dump(got), dump(packet))
				}
			}
		} else {
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			o := s.oracle
			o.mtu = 1 << 17
			got := s.receive(t)
			inner, way, _ := o.prepare(packet, int(c.segs), got)
			step := way.stepOf(inner, got)
			if step < 0 {
				t.Fatalf("%s: %d bytes\n%swant, by some path,\n%s", c.name, len(got), dump(got), dump(way.wrap(inner, 0)))
			}
			before.Encapsulated += c.segs
			before.add(way.bounce(step), Traffic{c.segs, c.segs*uint64(way.carrier.Overhead()+20+c.header) + uint64(c.payload)})
		}
		if got := s.stats(t); !equalStats(got, before) {
			t.Errorf("%s: counters\n%+v, want\n%+v", c.name, got, before)
		}
	}
}

// A super-segment that becomes too long for the device with its outer header is
// cut by the kernel, which counts on in both headers' IDs: all its segments are
// of one flowcell, and on one path.
func TestSpray_kernelCutsByTheSameRule(t *testing.T) {
	l := sprayLab(t)
	for _, c := range []encap.Carrier{encap.CarrierIPIP, encap.CarrierSRv6} {
		t.Run(c.String(), func(t *testing.T) { kernelCuts(t, newSprayedBy(t, l, "presto", c), c) })
	}
}

func kernelCuts(t *testing.T, s *sprayed, carrier encap.Carrier) {
	if err := unix.SetsockoptInt(s.out.FD, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err != nil {
		t.Skipf("packet sockets with offloads: %v", err)
	}
	outer := carrier.Overhead()
	payload, size := 65535-58, 1460-outer // which the outer header of IPv4 cannot say
	h := kerneltest.IPv4{TOS: 2, ID: 64 * 77, Frag: 0x4000, TTL: 64, Protocol: 6, Src: s.src.Addr, Dst: s.dst.Addr}
	l4 := append([]byte{0x12, 0x34, 0, 99, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 0, 0, 0, 0, 0, 0}, make([]byte, payload)...)
	if err := s.sendSuper(t, h.Bytes(l4), 1, 40, uint16(size), 16); err != nil {
		t.Fatal(err)
	}
	segments := (payload + size - 1) / size
	for i := range uint16(segments) {
		p := s.receive(t)
		s.checkOuter(t, p)
		if inner := binary.BigEndian.Uint16(p[outer+4:]); inner != h.ID+i || len(p) > 1500 {
			t.Fatalf("segment %d: %d bytes, ID %#x", i, len(p), inner)
		}
	}
	if st := s.stats(t); st.Encapsulated != uint64(segments) {
		t.Errorf("%d segments counted, want %d", st.Encapsulated, segments)
	}
}

// Super-segments without a length in their header cannot be encapsulated: the uplink
// is told to make none, and gets back what it had.
func TestAttachSpray_bigTCP(t *testing.T) {
	ns := kerneltest.Namespace(t, "bigtcp")
	kerneltest.EthernetPair(t, ns, "p0", "p1")
	top := kerneltest.Topology(t, "fat-tree:k=4")
	var old error
	err := kernel.InNamespace(ns, func() error {
		link, err := netlink.LinkByName("p0")
		if err != nil {
			return err
		}
		if err := netlink.LinkSetGSOIPv4MaxSize(link, 100000); err != nil {
			old = err
			return nil
		}
		cfg := SprayConfig{Uplink: "p0", Addresses: []netip.Addr{top.Node(0).Addr}, Topology: top, Policy: mustPolicy(t, "presto")}
		most := func(want uint32) {
			t.Helper()
			now, err := netlink.LinkByName("p0")
			if err != nil {
				t.Error(err)
			} else if n := now.Attrs().GSOIPv4MaxSize; n != want {
				t.Errorf("gso_ipv4_max_size is %d, want %d", n, want)
			}
		}
		o, err := AttachSpray(cfg)
		if err != nil {
			return err
		}
		most(65536)
		if mended, err := o.Repair(); err != nil || mended != nil {
			t.Errorf("nothing to mend: %q, %v", mended, err)
		}
		if err := netlink.LinkSetGSOIPv4MaxSize(link, 110000); err != nil {
			return err
		}
		if mended, err := o.Repair(); err != nil || len(mended) != 1 || mended[0] != "set gso_ipv4_max_size of p0 to 65536 again, which was 110000" {
			t.Errorf("mended %q, %v", mended, err)
		}
		most(65536)

		// A later process takes the record over, and makes what is cut into small
		// flowcells smaller.
		o.release()
		cfg.Cut = cfg.Addresses
		cfg.Policy.Unit.Bytes = 10000
		if o, err = AttachSpray(cfg); err != nil {
			return err
		}
		most(10000)
		o.release()
		if removed, err := DetachSpray("p0"); err != nil || removed == 0 {
			t.Errorf("detached: %v, %v", removed, err)
		}
		most(110000)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if old != nil {
		t.Skipf("BIG TCP: %v", old)
	}
}

// What is in a tunnel of the kernel's goes out as it is, and arrives.
func TestSpray_tunnelsOfTheKernel(t *testing.T) {
	s := newSprayed(t, sprayLab(t), "drb")
	vxlan := &netlink.Vxlan{LinkAttrs: netlink.NewLinkAttrs(), VxlanId: 7, Port: 4789,
		SrcAddr: s.src.Addr.AsSlice(), Group: s.dst.Addr.AsSlice()}
	vxlan.Name = "vx0"
	if err := s.lab.Do(s.src.ID, func() error { return netlink.LinkAdd(vxlan) }); err != nil {
		t.Skipf("VXLAN devices: %v", err)
	}
	t.Cleanup(func() { s.lab.Do(s.src.ID, func() error { return netlink.LinkDel(vxlan) }) })
	err := s.lab.Do(s.src.ID, func() error {
		if err := netlink.LinkSetUp(vxlan); err != nil {
			return err
		}
		fd, err := kerneltest.PacketSocket(t, vxlan.Index, nil)
		if err != nil {
			return err
		}
		if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err != nil {
			return err
		}
		// A super-segment: only those does the kernel mark as tunnelled.
		packet := kerneltest.IPv4{ID: 1, Frag: 0x4000, TTL: 64, Protocol: 6, Src: netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("192.0.2.2")}.Bytes(
			append([]byte{0x12, 0x34, 0, 99, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 0, 0, 0, 0, 0, 0}, make([]byte, 5000)...))
		_, err = unix.Write(fd, slices.Concat([]byte{1, 1, 54, 0, 0xe8, 3, 34, 0, 16, 0}, make([]byte, 12), []byte{8, 0}, packet))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	p := s.receive(t)
	if p[9] != 17 || netip.AddrFrom4([4]byte(p[16:])) != s.dst.Addr {
		t.Errorf("got\n%s", dump(p))
	}
	if st := s.stats(t); st.Refused == 0 || st.Encapsulated+st.TooLong+st.Malformed+st.NoPath != 0 {
		t.Errorf("counters %+v", st)
	}
}

// The kernel takes the table of the largest fabric.
func TestSpray_largestFabric(t *testing.T) {
	ns := kerneltest.Namespace(t, "largest")
	kerneltest.EthernetPair(t, ns, "p0", "p1")
	top := kerneltest.Topology(t, "fat-tree:k=64")
	err := kernel.InNamespace(ns, func() error {
		o, err := AttachSpray(SprayConfig{Uplink: "p0", Addresses: []netip.Addr{top.Node(0).Addr}, Topology: top, Policy: mustPolicy(t, "drb")})
		if err != nil {
			return err
		}
		defer o.Close()
		st, err := o.Stats()
		if len(st.Bounces) != 1024+32 {
			t.Errorf("%d bouncing switches counted, want 1056", len(st.Bounces))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
