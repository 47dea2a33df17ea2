package hostprog

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/flowcell"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/policy"
	"weft/resequencer"
	"weft/topology"
)

// newCutting is newSprayed with the kernel's address cut and the embedded
// stack's not.
func newCutting(t *testing.T, o policy.Options) *sprayed {
	t.Helper()
	s := newSprayed(t, sprayLab(t), "presto")
	cfg := s.config(t, "presto")
	p, err := policy.New("presto", o)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Policy, cfg.Cut = p, []netip.Addr{s.src.Addr}
	s.attach(t, cfg)
	s.oracle.cut = newCutOracle(p.Unit, cfg.Cut...)
	s.onTime(t)
	return s
}

// Packets of all kinds leave as before but for the numbers, which an embedded
// stack writes itself.
func TestSpray_cutEqualsTheOracle(t *testing.T) {
	s := newCutting(t, policy.Options{})
	for _, p := range s.packets() {
		s.check(t, p.name, p.bytes)
	}
	for _, flags := range []byte{0x10, 0x02, 0x11, 0x04, 0x18} { // ACK, SYN, FIN, RST, PSH
		for _, port := range []byte{80, 81} { // a flow that is known, one that is not
			p := s.numberedSegment(0xabff)[:40]
			p[3], p[23], p[33] = 40, port, flags
			binary.BigEndian.PutUint16(p[10:], 0)
			binary.BigEndian.PutUint16(p[10:], ^kerneltest.OnesSum(p[:20]))
			s.check(t, "without payload", p)
		}
	}
	for range 200 {
		s.check(t, "by the number of segments", s.numberedSegment(7))
	}
}

// vnet makes the uplink's packet socket one for sendSuper.
func (s *sprayed) vnet(t *testing.T) {
	t.Helper()
	if err := unix.SetsockoptInt(s.out.FD, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err != nil {
		t.Skipf("packet sockets with offloads: %v", err)
	}
	s.oracle.mtu = 1 << 17
	// Super-segments of more than a flowcell come through, too, where the device lets them.
	err := s.lab.Do(s.src.ID, func() error {
		link, err := netlink.LinkByName("p0")
		if err != nil {
			return err
		}
		return netlink.LinkSetGSOIPv4MaxSize(link, kernel.MaxSuper)
	})
	if err != nil {
		t.Logf("gso_ipv4_max_size: %v", err)
	}
}

// checkSuper sends a packet of so many bytes per segment, behind a TCP header of
// so many, and compares what leaves.
func (s *sprayed) checkSuper(t *testing.T, h kerneltest.IPv4, l4 []byte, header, size int) {
	t.Helper()
	packet := h.Bytes(l4)
	kind, segments := byte(0), 1
	if payload := len(l4) - header; payload > size {
		kind, segments = 1, (payload+size-1)/size
	}
	if err := s.sendSuper(t, packet, kind, uint16(20+header), uint16(size), 16); err != nil {
		t.Fatal(err)
	}
	got := s.receive(t)
	want, _ := s.oracle.sentAs(packet, segments, 0, got)
	if !bytes.Equal(got, want) || kerneltest.OnesSum(got[20:40]) != 0xffff {
		t.Fatalf("%d segments, sent\n%sgot\n%swant\n%s", segments, dump(packet), dump(got), dump(want))
	}
}

// Whatever comes, of some flows and in packets of one segment or many, has the
// numbers of the Cutter, whose units end when the table is another.
func TestSpray_cutsAsTheCutter(t *testing.T) {
	for _, bytes := range []int{policy.MinFlowcellBytes, 0, policy.MaxFlowcellBytes} {
		s := newCutting(t, policy.Options{FlowcellBytes: bytes})
		s.vnet(t)
		const seed = 6
		rng := rand.New(rand.NewPCG(seed, uint64(bytes)))
		whole := s.lab.Config.Topology
		core, _ := whole.Lookup("3.1")
		tops := []*topology.Topology{whole.WithoutNode(core.ID), whole}
		for i := range 1200 {
			if i%400 == 399 {
				top := tops[i/400%2]
				if err := s.spray.SetTopology(top); err != nil {
					t.Fatal(err)
				}
				s.oracle.table = mustTable(t, top, s.src.ID, mustPolicy(t, "presto"))
				s.oracle.cut.end()
			}
			h := kerneltest.IPv4{ID: uint16(rng.Uint32()), Frag: 0x4000, TTL: 64, Protocol: 6, Src: s.src.Addr, Dst: s.dst.Addr}
			l4 := make([]byte, 20, 60100)
			l4[1], l4[3], l4[13] = byte(rng.IntN(3)), 80, []byte{0x10, 0x18, 0x11, 0x12, 0x14, 0}[rng.IntN(6)]
			header := 20 + 12*rng.IntN(2)
			l4 = l4[:header+[]int{0, 1, 100, 1400, 3000, 20000, 60000}[rng.IntN(7)]]
			l4[12] = byte(header/4) << 4
			size := []int{44, 700, 1400}[rng.IntN(3)]
			if len(l4) < 200 && rng.IntN(8) == 0 {
				l4[12], size = byte(rng.Uint32()), 1400 // longer than the packet, or too short
			}
			s.checkSuper(t, h, l4, header, size)
			if t.Failed() {
				t.Fatalf("seed %d, packet %d", seed, i)
			}
		}
		st := s.stats(t)
		if flows, cells := s.oracle.cut.counts(); st.Flows != flows || st.Flowcells != cells || flows != 3 {
			t.Errorf("%d flows and %d flowcells counted, want %d and %d", st.Flows, st.Flowcells, flows, cells)
		}
	}
}

// run has the kernel's test run process a packet, and compares what becomes of
// it. It is faster than sending.
func (s *sprayed) run(t *testing.T, packet []byte) {
	t.Helper()
	run := ebpf.RunOptions{Data: frameOf(packet), DataOut: make([]byte, 512)}
	verdict, err := s.spray.at.Prog.Run(&run)
	if err != nil {
		t.Fatal(err)
	}
	got := run.DataOut[kernel.EthernetHeader:]
	want, _ := s.oracle.sentAs(packet, 1, 0, got)
	if verdict == actShot || !bytes.Equal(got, want) {
		t.Fatalf("verdict %d:\n%sgot\n%swant\n%s", int32(verdict), dump(packet), dump(got), dump(want))
	}
}

// More flows than the table holds are numbered all the same. One that was
// forgotten goes on from its first flowcell.
func TestSpray_cutsMoreFlowsThanItRemembers(t *testing.T) {
	s := newCutting(t, policy.Options{})
	segment := func(flow int) []byte {
		p := s.numberedSegment(9)
		binary.BigEndian.PutUint16(p[20:], uint16(flow))
		p[23] = 80 + byte(flow>>16)
		return p
	}
	const flows = 1<<16 + 1<<13
	for i := range flows {
		s.run(t, segment(i))
	}
	if st := s.stats(t); st.Flows != flows || st.Encapsulated != flows {
		t.Errorf("%+v; want %d flows", st, flows)
	}
	// Which of the oldest are forgotten is the kernel's to say: its table is not
	// strict about it.
	for i := range 1000 {
		run := ebpf.RunOptions{Data: frameOf(segment(i)), DataOut: make([]byte, 512)}
		if _, err := s.spray.at.Prog.Run(&run); err != nil {
			t.Fatal(err)
		}
		if st := s.stats(t); st.Flows == flows {
			continue
		}
		clear(s.oracle.cut.flows)
		if want, _ := s.oracle.sentAs(segment(i), 1, 0, run.DataOut[kernel.EthernetHeader:]); !bytes.Equal(run.DataOut[kernel.EthernetHeader:], want) {
			t.Errorf("flow %d anew:\n%swant\n%s", i, dump(run.DataOut[kernel.EthernetHeader:]), dump(want))
		}
		s.run(t, segment(i)) // and on
		return
	}
	t.Errorf("of %d flows none of the first 1,000 is forgotten", flows)
}

// Super-segments of a packet socket, whose segments the kernel does not count,
// are numbered whole, with the right checksum.
func TestSpray_cutsSuperSegments(t *testing.T) {
	s := newCutting(t, policy.Options{})
	s.vnet(t)
	for _, c := range []struct{ payload, size int }{
		{20000, 1440}, {45000, 1440}, {20536, 1440}, {1441, 1440}, {65461, 1440}, {3000, 100}, {3400, 100}, {30000, 100}, {2881, 1440},
	} {
		h := kerneltest.IPv4{TOS: 2, ID: 0xbeef, Frag: 0x4000, TTL: 64, Protocol: 6, Src: s.src.Addr, Dst: s.dst.Addr}
		l4 := append([]byte{0x12, 0x34, 0, 99, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 0, 0, 0, 0, 0, 0}, make([]byte, c.payload)...)
		s.checkSuper(t, h, l4, 20, c.size)
	}
}

// A connection of the kernel's leaves in whole flowcells, each by one path and
// one after the other, which a receiver believes.
func TestSpray_cutsTheKernelsTCP(t *testing.T) {
	s := newCutting(t, policy.Options{})
	s.leaveRoom(t)
	s.gather(t)
	packets, _ := s.carried(t, 8<<20)
	b := resequencer.New[int](resequencer.Config{Discipline: resequencer.Presto})
	paths := make(map[uint16]netip.Addr)
	var last flowcell.Number
	var order []int
	multiple := 0
	s.oracle.mtu = 1 << 17
	s.oracle.cut.last, s.oracle.cut.now = nil, nil // all is over
	for i, p := range packets {
		inner := p[20:]
		segs, _ := s.segmentsOf(p)
		if want, _ := s.oracle.sentAs(inner, int(segs), 0, p); !bytes.Equal(p, want) {
			t.Fatalf("packet %d: got\n%swant\n%s", i, dump(p), dump(want))
		}
		var seg flowcell.Packet
		if err := seg.Parse(inner); err != nil {
			t.Fatal(err)
		}
		seg.MoreSegments = uint8(segs - 1)
		order = b.Push(&seg, i, time.Duration(i)*time.Microsecond, order)
		id, cell := flowcell.Number(seg.ID), flowcell.Number(seg.ID).Cell()
		if !seg.IsPureACK() && id.Index() > flowcell.MaxIndex {
			t.Errorf("packet %d has index %d", i, id.Index())
		}
		if seg.Payload == 0 {
			continue
		}
		bounce := netip.AddrFrom4([4]byte(p[16:]))
		switch before, seen := paths[cell]; {
		case !seen && (id.Index() != 0 || len(paths) > 0 && cell != (last.Cell()+1)%flowcell.Cells):
			t.Fatalf("packet %d: flowcell %d begins with index %d behind %d", i, cell, id.Index(), last.Cell())
		case seen && (bounce != before || id != last+1):
			t.Fatalf("packet %d: number %#x by %v behind %#x by %v", i, id, bounce, last, before)
		case seen:
			multiple++
		}
		paths[cell], last = bounce, id+flowcell.Number(seg.MoreSegments)
	}
	st := b.Stats()
	if st.FlowsNumbered != 1 || st.FlowsUnnumbered != 0 || st.HeldPackets != 0 {
		t.Errorf("the receiver says %+v", st)
	}
	if len(paths) < 8<<20/flowcell.FlowcellBytes || multiple == 0 {
		t.Errorf("%d flowcells, %d packets behind the first of theirs, in 8 MB", len(paths), multiple)
	}
}
