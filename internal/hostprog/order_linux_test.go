package hostprog

import (
	"cmp"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/flowcell"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/link"
)

// orderTest is a host with the programs at its uplink, a reader, and a neighbour.
type orderTest struct {
	order  *Order
	reader *link.Packet
	out    *kerneltest.Wire
	ns     string // of the neighbour
	near   string // the host's namespace
}

var (
	orderFrom, orderTo   = netip.MustParseAddr(farAddr), netip.MustParseAddr(nearAddr)
	orderFrom6, orderTo6 = netip.MustParseAddr("fd00::99"), netip.MustParseAddr("fd00::2")
)

func newOrderTest(t *testing.T) *orderTest {
	t.Helper()
	return newOrderTestOf(t, 0)
}

// newOrderTestOf is newOrderTest of a reader with room for so many bytes (OrderConfig.SuperBytes).
func newOrderTestOf(t *testing.T, superBytes int) *orderTest {
	t.Helper()
	near, far := kerneltest.Namespace(t, "near"), kerneltest.Namespace(t, "far")
	o := &orderTest{out: neighbour(t, near, far), ns: far, near: near}
	kerneltest.Shell(t, near, "ip address add "+orderTo6.String()+"/64 dev p0 nodad")
	err := kernel.InNamespace(near, func() (err error) {
		if o.order, err = AttachOrder(OrderConfig{Uplink: "p0", Addresses: []netip.Addr{orderTo, orderTo6}, SuperBytes: superBytes,
			Datagrams: Datagrams{Ports: []uint16{443}, Hosts: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}}); err != nil {
			return err
		}
		t.Cleanup(func() {
			if err := o.order.Close(); err != nil {
				t.Error(err)
			}
		})
		if o.reader, err = link.OpenPacket(link.PacketConfig{Interface: "p0", FilterFD: o.order.Filter()}); err == nil {
			t.Cleanup(func() { o.reader.Close() })
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	o.alive(t, true)
	return o
}

func (o *orderTest) alive(t *testing.T, yes bool) {
	t.Helper()
	o.order.heart.pretend(t, yes)
}

func (o *orderTest) stats(t *testing.T) OrderStats {
	t.Helper()
	st, err := o.order.Stats()
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// orderSegment is TCP to the host.
type orderSegment struct {
	six     bool
	port    uint16
	to      uint16 // 0: 80
	seq     uint32
	payload int
	flags   byte
}

func (s orderSegment) tuple() *flowcell.FiveTuple {
	var p flowcell.Packet
	if err := p.Parse(s.bytes()); err != nil {
		panic(err)
	}
	return &p.Flow
}

func (s orderSegment) bytes() []byte {
	tcp := make([]byte, 20+s.payload)
	binary.BigEndian.PutUint16(tcp, s.port)
	binary.BigEndian.PutUint16(tcp[2:], cmp.Or(s.to, 80))
	binary.BigEndian.PutUint32(tcp[4:], s.seq)
	tcp[12], tcp[13] = 5<<4, s.flags|flowcell.FlagACK
	from, to := orderFrom, orderTo
	if s.six {
		from, to = orderFrom6, orderTo6
	}
	pseudo := slices.Concat(from.AsSlice(), to.AsSlice(), []byte{0, 6, byte(len(tcp) >> 8), byte(len(tcp))}, tcp)
	binary.BigEndian.PutUint16(tcp[16:], ^kerneltest.OnesSum(pseudo))
	if s.six {
		return kerneltest.IPv6{Next: 6, Hops: 64, Src: orderFrom6, Dst: orderTo6}.Bytes(tcp)
	}
	return kerneltest.IPv4{Protocol: 6, TTL: 64, Src: orderFrom, Dst: orderTo}.Bytes(tcp)
}

// arrive sends a packet to the host and reports whether the program diverted it. A packet is
// counted once both programs are behind it, since both run in the call that sends.
func (o *orderTest) arrive(t *testing.T, packet []byte) (diverted bool) {
	t.Helper()
	before := o.stats(t)
	protocol := uint16(unix.ETH_P_IP)
	if packet[0]>>4 == 6 {
		protocol = unix.ETH_P_IPV6
	}
	o.out.SendFrame(t, protocol, packet)
	var after OrderStats
	kerneltest.Within(t, kerneltest.Patience, "the packet to arrive", func() bool {
		after = o.stats(t)
		return after.Seen > before.Seen
	})
	return after.Diverted > before.Diverted
}

// read returns what the reader has got.
func (o *orderTest) read(t *testing.T) (segments []uint32) {
	t.Helper()
	bufs, sizes := [][]byte{make([]byte, 70000)}, []int{0}
	for {
		o.reader.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		n, _ := o.reader.Read(bufs, sizes, 0)
		if n == 0 {
			return segments
		}
		var p flowcell.Packet
		if err := p.Parse(bufs[0][:sizes[0]]); err != nil {
			t.Fatal(err)
		}
		segments = append(segments, p.Seq)
	}
}

// What comes behind a hole is the reader's, and so is all that follows, until it has been
// returned.
func TestOrder_divertsBehindAHole(t *testing.T) {
	o := newOrderTest(t)
	for _, six := range []bool{false, true} {
		seg := func(seq uint32) orderSegment { return orderSegment{six: six, port: 5000, seq: seq, payload: 100} }
		steps := func(want bool, seqs ...uint32) {
			t.Helper()
			for _, s := range seqs {
				if got := o.arrive(t, seg(s).bytes()); got != want {
					t.Errorf("six %v, %d: diverted %v", six, s, got)
				}
			}
		}
		steps(false, 1000, 1100, 1000, 1200, 1250) // in order, a copy, an overlap
		steps(true, 1450, 1350, 1550)
		n, ok := o.order.Find(seg(0).tuple())
		if !ok || o.order.Next(n) != 1350 || o.order.Diverted(n) != 3 || o.order.Returned(n) != 0 {
			t.Fatalf("six %v: flow %d, %v: next %d, %d diverted", six, n, ok, o.order.Next(n), o.order.Diverted(n))
		}
		if got := o.read(t); !slices.Equal(got, []uint32{1450, 1350, 1550}) {
			t.Errorf("the reader got %d", got)
		}
		o.order.Return(n, 1550, 2) // not all
		steps(true, 1650)
		o.order.Return(n, 1750, 4)
		steps(false, 1750, 1850)
		if o.order.Next(n) != 1950 {
			t.Errorf("next %d", o.order.Next(n))
		}
		o.read(t)
	}
	if st := o.stats(t); st.Diverted != 8 || st.Straight != 14 || st.Missed+st.Crowded+st.PassedDead != 0 {
		t.Errorf("%+v", st)
	}
}

// What the reader has no time for goes to the kernel at once, also of a flow that it has, and the
// flow goes on behind it.
func TestOrder_limit(t *testing.T) {
	o := newOrderTest(t)
	seg := func(seq uint32) []byte { return orderSegment{port: 5001, seq: seq, payload: 100}.bytes() }
	flow := orderSegment{port: 5001}.tuple()
	limit := func(parts int) {
		t.Helper()
		const from = 250 // so that the parts go round
		if err := o.order.Limit(from, parts); err != nil {
			t.Fatal(err)
		}
	}
	o.arrive(t, seg(1000))
	n, _ := o.order.Find(flow)
	part := (n/orderWays - 250 + o.order.Parts()) % o.order.Parts()
	limit(part)
	if o.arrive(t, seg(1200)) || o.order.Next(n) != 1300 || o.stats(t).Shed != 1 {
		t.Errorf("a part that is shed: next %d, %+v", o.order.Next(n), o.stats(t))
	}
	limit(part + 1)
	if !o.arrive(t, seg(1400)) {
		t.Error("a part that is not shed is not diverted")
	}
	limit(part)
	if o.arrive(t, seg(1500)) || o.order.Diverted(n) != 1 || o.order.Next(n) != 1300 {
		t.Errorf("shed while it is diverted: %d diverted, next %d", o.order.Diverted(n), o.order.Next(n))
	}
	o.order.Return(n, 1500, 1)
	if o.arrive(t, seg(1600)) || o.order.Next(n) != 1700 || o.stats(t).Shed != 3 {
		t.Errorf("returned: next %d, %+v", o.order.Next(n), o.stats(t))
	}
}

// What the reader gets the kernel does not get, and the other way round. The kernel answers
// a segment for which it has no socket, so answers show what it got.
func TestOrder_readerAndKernelShare(t *testing.T) {
	o := newOrderTest(t)
	if err := unix.SetsockoptTimeval(o.out.FD, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100000}); err != nil {
		t.Fatal(err)
	}
	segment := func(seq uint32) []byte { return orderSegment{port: 6000, seq: seq, payload: 100}.bytes() }
	answered := func() bool {
		b := make([]byte, 2000)
		for {
			n, from, err := unix.Recvfrom(o.out.FD, b, 0)
			if err != nil {
				return false
			}
			var p flowcell.Packet
			if from.(*unix.SockaddrLinklayer).Pkttype == unix.PACKET_HOST && p.Parse(b[14:n]) == nil && p.IsTCP() && p.Flow.DstPort == 6000 {
				return true
			}
		}
	}
	for i, c := range []struct {
		seq      uint32
		diverted bool
	}{{1000, false}, {1100, false}, {1300, true}, {1200, true}} {
		if diverted := o.arrive(t, segment(c.seq)); diverted != c.diverted || answered() == diverted {
			t.Errorf("segment %d: diverted %v, or the kernel's answer is wrong", i, diverted)
		}
	}
	o.reader.Close() // from the next packet on the kernel gets all
	if o.out.Send(t, segment(1500)); !answered() {
		t.Error("without a reader the kernel got nothing")
	}
}

// A silent reader gets nothing, and the kernel everything.
func TestOrder_silentReader(t *testing.T) {
	o := newOrderTest(t)
	seg := func(seq uint32) []byte { return orderSegment{port: 5000, seq: seq, payload: 100}.bytes() }
	o.arrive(t, seg(0))
	o.alive(t, false)
	if o.arrive(t, seg(200)) || o.arrive(t, seg(300)) {
		t.Error("diverted")
	}
	o.alive(t, true)
	if o.arrive(t, seg(400)) {
		t.Error("what was left to the kernel counts as a hole")
	}
	if !o.arrive(t, seg(600)) {
		t.Error("not diverted")
	}
	o.alive(t, false)
	if o.arrive(t, seg(700)) || o.stats(t).PassedDead != 1 {
		t.Errorf("diverted: %+v", o.stats(t))
	}
}

// Only data of TCP for the host is anybody's concern.
func TestOrder_leavesAlone(t *testing.T) {
	o := newOrderTest(t)
	seg := orderSegment{port: 5000, seq: 0, payload: 100}
	o.arrive(t, seg.bytes())
	ahead := seg
	ahead.seq = 500
	ack, rst := ahead, ahead
	ack.payload, rst.payload, rst.flags = 0, 0, flowcell.FlagRST
	fragment, other, udp, short := ahead.bytes(), ahead.bytes(), ahead.bytes(), ahead.bytes()
	fragment[6] = 0x20
	other[19]++
	udp[9] = 17
	short[32] = 1 << 4
	for name, packet := range map[string][]byte{
		"acknowledgement": ack.bytes(), "reset": rst.bytes(), "fragment": fragment, "another's": other, "UDP": udp, "short TCP header": short, "cut": ahead.bytes()[:50],
	} {
		if o.arrive(t, packet) {
			t.Errorf("%s: diverted", name)
		}
	}
	if !o.arrive(t, ahead.bytes()) || !o.arrive(t, rst.bytes()) {
		t.Error("a hole, and a reset behind it: not diverted")
	}
	fin := seg
	fin.port, fin.flags, fin.payload = 5001, flowcell.FlagSYN, 0
	o.arrive(t, fin.bytes())
	fin.flags, fin.seq = flowcell.FlagFIN, 1
	if o.arrive(t, fin.bytes()) {
		t.Error("a FIN in order: diverted")
	}
	if n, ok := o.order.Find(fin.tuple()); !ok || o.order.Next(n) != 2 {
		t.Errorf("behind SYN and FIN: %d, %v", o.order.Next(n), ok)
	}
}

// The program and a model of it agree on flows that are disturbed at random.
func TestOrder_equalsItsModel(t *testing.T) {
	o := newOrderTest(t)
	const seed = 11
	rng := rand.New(rand.NewPCG(seed, 0))
	flows := make([]orderModel, 6)
	for i := range 3000 {
		at := rng.IntN(len(flows))
		m := &flows[at]
		s := orderSegment{six: at%2 == 1, port: uint16(7000 + at), payload: rng.IntN(3) * 100}
		if s.seq = m.next + uint32(rng.IntN(5)-3)*100; rng.IntN(8) > 0 {
			s.seq = m.next
		} else if rng.IntN(3) == 0 {
			s.seq = rng.Uint32()
		}
		if m.strays > 0 && rng.IntN(4) > 0 {
			s.seq = m.stray + uint32(rng.IntN(7)-3)<<18 // up to 786,432 from the last
		}
		s.flags = []byte{0, 0, 0, 0, 0, flowcell.FlagSYN, flowcell.FlagFIN, flowcell.FlagRST}[rng.IntN(8)]
		length := uint32(s.payload)
		if s.flags != 0 && s.flags != flowcell.FlagRST {
			length++
		}
		want := m.arrive(s, length)
		if got := o.arrive(t, s.bytes()); got != want {
			t.Fatalf("seed %d, packet %d, %+v of %+v: diverted %v", seed, i, s, *m, got)
		}
		if n, ok := o.order.Find(s.tuple()); ok != m.known || ok && (o.order.Next(n) != m.next || o.order.Diverted(n) != m.diverted) {
			t.Fatalf("seed %d, packet %d: next %d, %d diverted; the model has %+v", seed, i, o.order.Next(n), o.order.Diverted(n), *m)
		} else if ok && m.diverted != m.returned && rng.IntN(3) == 0 {
			m.next, m.returned = m.next+uint32(rng.IntN(4))*100, m.diverted
			o.order.Return(n, m.next, m.returned)
		}
	}
	o.read(t)
	leapt, strays := 0, 0
	for _, m := range flows {
		leapt, strays = leapt+m.leapt, strays+m.left
	}
	if st := o.stats(t); leapt < 10 || st.Strays != uint64(strays) || st.OverBudget != 0 {
		t.Errorf("%d leaps, %d strays; %+v", leapt, strays, st)
	}
}

// orderModel is a flow as order.c keeps it, of which the kernel has no socket.
type orderModel struct {
	known              bool
	next               uint32
	about              uint16
	strays             int
	stray              uint32 // where the last one ended
	diverted, returned uint64
	leapt, left        int // counted: leaps, and strays that were none
}

// Of order.c.
const (
	orderNear       = 16 << 20
	orderStraysNear = 1 << 20
	orderLeaps      = 4
)

// arrive reports whether a segment of a length in sequence numbers is diverted.
func (m *orderModel) arrive(s orderSegment, length uint32) (diverted bool) {
	end, ahead, units := s.seq+length, int32(s.seq-m.next), int16(uint16(s.seq>>16)-m.about)
	syn, rst, held := s.flags == flowcell.FlagSYN, s.flags == flowcell.FlagRST, m.diverted != m.returned
	near := -orderNear <= ahead && ahead <= orderNear
	if held {
		near = -orderNear>>16 <= units && units <= orderNear>>16
	}
	switch {
	case length == 0 && !rst || !m.known && rst:
		return false
	case !m.known:
		m.known, m.next = true, end
		return false
	case syn && !held && (!near || ahead > 0):
		m.next, m.strays = end, 0
		return false
	case near:
		m.strays = 0
	case rst:
		return false
	default:
		if d := int32(s.seq - m.stray); m.strays > 0 && (d < -orderStraysNear || d > orderStraysNear) {
			m.strays = 0
		}
		m.stray = end
		if m.strays++; m.strays < orderLeaps {
			m.left++
			return false
		}
		m.strays = 0
		m.leapt++
		if !held {
			m.next = end
			return false
		}
		m.about, units = uint16(s.seq>>16), 0
	}
	switch {
	case held && units > 0:
		m.about++
	case held && units < 0:
		m.about--
	case held:
	case ahead <= 0 || rst:
		if int32(end-m.next) > 0 && !rst {
			m.next = end
		}
		return false
	default:
		m.about = uint16(s.seq >> 16)
	}
	m.diverted++
	return true
}

// A flood of flows that all have one bucket does not displace one that was in order for a
// while, but one that was not.
func TestOrder_floodOfFlows(t *testing.T) {
	o := newOrderTest(t)
	for packets, stays := range map[int]bool{2: false, 70: true} {
		// A flow is kept only while it is in use: a machine that pauses shows nothing.
		kerneltest.Within(t, kerneltest.Patience, "a flood that no pause interrupts", func() bool {
			s := orderSegment{port: uint16(rand.Uint32()), payload: 100}
			flood := o.ofOneBucket(keyOf(s.tuple()), 10)
			for range packets {
				o.arrive(t, s.bytes())
				s.seq += 100
			}
			began := time.Now()
			for _, ip := range flood {
				o.arrive(t, ip)
			}
			_, ok := o.order.Find(s.tuple())
			if time.Since(began) > orderIdle/2 {
				return false
			}
			if ok != stays {
				t.Errorf("a flow of %d packets is known: %v", packets, ok)
			}
			return true
		})
	}
}

// orderIdle is a little less than IDLE of order.c.
const orderIdle = 200 * time.Millisecond

// ofOneBucket returns packets of n other flows that have a flow's bucket.
func (o *orderTest) ofOneBucket(key orderKey, n int) (flood [][]byte) {
	bucket := key.bucket(o.order.seed)
	forged := orderSegment{payload: 2}.bytes()
	for i := uint32(0); len(flood) < n; i++ {
		ip := slices.Clone(forged)
		binary.BigEndian.PutUint32(ip[12:], 0x0b000000+i)
		copy(key.src[12:], ip[12:16])
		copy(key.ports[:], ip[20:24])
		if key.bucket(o.order.seed) != bucket {
			continue
		}
		ip[10], ip[11] = 0, 0
		binary.BigEndian.PutUint16(ip[10:], ^kerneltest.OnesSum(ip[:20]))
		flood = append(flood, ip)
	}
	return flood
}
