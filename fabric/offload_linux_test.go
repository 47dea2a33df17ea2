package fabric

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"weft/policy"
	"weft/topology"
)

// sprayed is a host with the program at its uplink, and the other end of the
// cable.
type sprayed struct {
	lab      *Lab
	src, dst topology.Node // in different racks
	offload  *Offload
	oracle   sprayOracle
	out, far *wire // at the host's uplink, at its edge switch
}

// sprayLab is a fabric of four cores whose links keep super-segments whole.
func sprayLab(t *testing.T) *Lab {
	return upLab(t, LabConfig{Topology: mustParse(t, "fat-tree:k=4"),
		RateMbit: 1000, BurstBytes: 256 << 10, QueueBytes: 4 << 20})
}

func newSprayed(t *testing.T, l *Lab, name string) *sprayed {
	t.Helper()
	hosts := hostsOf(l.Config.Topology)
	s := &sprayed{lab: l, src: hosts[0], dst: hosts[len(hosts)-1]}
	top := l.Config.Topology
	cfg := s.config(t, name)
	s.attach(t, cfg)
	s.oracle = sprayOracle{own: cfg.Addresses, table: mustTable(t, top, s.src.ID, cfg.Policy), mtu: 1500}
	s.out = openWire(t, l, s.src.ID, 0)
	s.far = openWire(t, l, top.Ports(s.src.ID)[0].Peer, 0)
	return s
}

func (s *sprayed) config(t *testing.T, policy string) OffloadConfig {
	top := s.lab.Config.Topology
	return OffloadConfig{Uplink: "p0", Addresses: []netip.Addr{s.src.Addr, top.EmbeddedAddr(s.src.ID)},
		Topology: top, Self: s.src.ID, Policy: mustPolicy(t, policy)}
}

func mustTable(t *testing.T, top *topology.Topology, self topology.NodeID, p policy.Policy) sprayTable {
	t.Helper()
	table, err := newSprayTable(top, self, p)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func mustPolicy(t testing.TB, name string) policy.Policy {
	t.Helper()
	p, err := policy.New(name, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (s *sprayed) attach(t *testing.T, cfg OffloadConfig) {
	t.Helper()
	err := s.lab.Do(s.src.ID, func() (err error) {
		s.offload, err = AttachOffload(cfg)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	o := s.offload
	t.Cleanup(func() {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	})
}

func (s *sprayed) stats(t *testing.T) OffloadStats {
	t.Helper()
	st, err := s.offload.Stats()
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// counter is where a verdict is counted.
func (s *OffloadStats) counter(v verdict) *uint64 {
	return []*uint64{encapsulated: &s.Encapsulated, passed: &s.Passed, noPath: &s.NoPath,
		tooLong: &s.TooLong, badLength: &s.Malformed}[v]
}

// check sends a packet, and a marker behind it that passes as it is: what has
// not come when the marker is there was dropped.
func (s *sprayed) check(t *testing.T, name string, packet []byte) {
	t.Helper()
	before := s.stats(t)
	want, v := s.oracle.sent(packet, 0)
	s.send(t, packet, want == nil)
	marker := ipv4{id: 0x7777, ttl: 9, protocol: 253, src: netip.MustParseAddr("10.99.0.1"), dst: s.dst.Addr}.bytes(nil)
	s.out.send(t, marker)
	got := s.far.receive(t)
	if want != nil {
		if !bytes.Equal(got, want) {
			t.Fatalf("%s: sent\n%sgot\n%swant\n%s", name, dump(packet), dump(got), dump(want))
		}
		got = s.far.receive(t)
	}
	if !bytes.Equal(got, marker) {
		t.Fatalf("%s: sent\n%sgot\n%swant nothing", name, dump(packet), dump(got))
	}
	*before.counter(v)++
	before.Passed++
	before.Flows, before.Flowcells = s.oracle.cut.counts()
	if v == encapsulated {
		bounce := netip.AddrFrom4([4]byte(want[16:]))
		for i := range before.Bounces {
			if before.Bounces[i].Addr == bounce {
				before.Bounces[i].Packets++
				before.Bounces[i].Bytes += uint64(binary.BigEndian.Uint16(want[2:]))
			}
		}
	}
	if got := s.stats(t); !equalStats(got, before) {
		t.Errorf("%s: counters\n%+v, want\n%+v", name, got, before)
	}
}

// send tells whether the sender is told of a drop, as a program that sends would
// be.
func (s *sprayed) send(t *testing.T, packet []byte, dropped bool) {
	t.Helper()
	frame := slices.Concat(s.out.far, s.out.own, []byte{0x08, 0x00}, packet)
	if _, err := unix.Write(s.out.fd, frame); err != nil && !(dropped && errors.Is(err, unix.ENOBUFS)) {
		t.Fatal(err)
	}
}

func dump(b []byte) string { return hex.Dump(b[:min(len(b), 64)]) }

// Packets of all kinds leave as weft's own encapsulator makes them, by the path
// that the oracle says.
func TestOffload_equalsTheOracle(t *testing.T) {
	l := sprayLab(t)
	for _, name := range []string{"drb", "rrb", "presto", "flowcell-drb", "ecmp"} {
		s := newSprayed(t, l, name)
		for _, p := range s.packets() {
			s.check(t, name+": "+p.name, p.bytes)
		}
	}
}

// packets are of all the kinds that the program tells apart.
func (s *sprayed) packets() []namedPacket {
	top := s.lab.Config.Topology
	tcp := ipv4{tos: 0x2a, id: 0x1234, frag: 0x4000, ttl: 33, protocol: 6, src: s.src.Addr, dst: s.dst.Addr}
	segment := append([]byte{0x12, 0x34, 0, 80, 1, 2, 3, 4, 5, 6, 7, 8, 0x50, 0x10, 1, 0, 0xab, 0xcd, 0, 0}, "payload"...)
	var all []namedPacket
	add := func(name string, h ipv4, payload []byte, edit ...func(b []byte)) {
		b := h.bytes(payload)
		for _, e := range edit {
			e(b)
		}
		all = append(all, namedPacket{name, b})
	}
	change := func(name string, edit func(*ipv4), payload []byte, bytes ...func(b []byte)) {
		h := tcp
		edit(&h)
		add(name, h, payload, bytes...)
	}
	for _, id := range []uint16{0, 1, 2, 3, 62, 63, 64, 65, 128, 0xffc0, 0xffff} {
		change("TCP by ID", func(h *ipv4) { h.id = id }, segment)
	}
	for port := range byte(8) {
		p := bytes.Clone(segment)
		p[1] = port
		add("TCP by port", tcp, p)
	}
	for tos := range byte(4) {
		change("ECN", func(h *ipv4) { h.tos = 0x48 | tos }, segment)
	}
	change("reserved flag", func(h *ipv4) { h.frag = 0xc000 }, segment)
	change("first fragment", func(h *ipv4) { h.frag = 0x2000 }, segment)
	change("first fragment with DF", func(h *ipv4) { h.frag = 0x6000 }, segment)
	change("last fragment", func(h *ipv4) { h.frag = 100 }, segment)
	change("options", func(h *ipv4) { h.options = []byte{1, 1, 1, 0} }, segment)
	change("most options", func(h *ipv4) { h.options = make([]byte, 40) }, segment)
	change("TCP cut short", func(*ipv4) {}, segment[:19])
	change("nothing inside", func(*ipv4) {}, nil)
	for _, id := range []uint16{0, 1, 2, 3, 64, 128, 192} {
		change("TCP without DF", func(h *ipv4) { h.id, h.frag = id, 0 }, segment)
		change("options, by ID", func(h *ipv4) { h.id, h.options = id, []byte{1, 1, 1, 0} }, segment)
		change("UDP", func(h *ipv4) { h.protocol, h.id, h.frag = 17, id, 0 }, segment)
		change("UDP with DF", func(h *ipv4) { h.protocol, h.id = 17, id }, segment)
		change("ICMP", func(h *ipv4) { h.protocol, h.id = 1, id }, []byte{8, 0, 0xf7, 0xff, 0, 0, 0, 0})
	}
	change("embedded address", func(h *ipv4) { h.src = top.EmbeddedAddr(s.src.ID) }, segment)
	change("to an embedded address", func(h *ipv4) { h.dst = top.EmbeddedAddr(s.dst.ID) }, segment)
	change("foreign source", func(h *ipv4) { h.src = netip.MustParseAddr("10.0.0.77") }, segment)
	change("own rack", func(h *ipv4) { h.dst = hostsOf(top)[1].Addr }, segment)
	change("not of the fabric", func(h *ipv4) { h.dst = netip.MustParseAddr("192.0.2.1") }, segment)
	change("nested", func(h *ipv4) { h.protocol = 4 }, tcp.bytes(segment))
	change("longest", func(*ipv4) {}, make([]byte, 1460))
	change("one too long", func(*ipv4) {}, make([]byte, 1461))
	change("far too long", func(*ipv4) {}, make([]byte, 1480))
	change("IHL 4", func(*ipv4) {}, segment, func(b []byte) { b[0] = 0x44 })
	change("length below header", func(*ipv4) {}, segment, func(b []byte) { b[3] = 19 })
	change("length above packet", func(*ipv4) {}, segment, func(b []byte) { b[3]++ })
	change("padding", func(*ipv4) {}, append(segment, 0), func(b []byte) { b[3]-- })
	return all
}

// noise is a packet of which every field may be anything.
func (s *sprayed) noise(rng *rand.Rand) []byte {
	b := make([]byte, 20+rng.IntN(200))
	for j := range b {
		b[j] = byte(rng.Uint32())
	}
	b[0] = 0x40 | byte(4+rng.IntN(4))
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)+rng.IntN(3)-1))
	b[9] = []byte{1, 4, 6, 6, 6, 17}[rng.IntN(6)]
	if rng.IntN(2) == 0 {
		b[6], b[7] = 0x40, 0
	}
	copy(b[12:], s.src.Addr.AsSlice())
	copy(b[16:], s.dst.Addr.AsSlice())
	return b
}

func TestOffload_equalsTheOracleOnNoise(t *testing.T) {
	s := newSprayed(t, sprayLab(t), "flowcell-drb")
	const seed = 4
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range 200 {
		s.check(t, "noise", s.noise(rng))
		if t.Failed() {
			t.Fatalf("seed %d, packet %d", seed, i)
		}
	}
	// Many more by the kernel's test runs, which send nothing.
	s.oracle.mtu = 65536 // of the loopback device
	out := make([]byte, 512)
	for i := range 20000 {
		packet := s.noise(rng)
		want, v := s.oracle.sent(packet, 0)
		run := ebpf.RunOptions{Data: frameOf(packet), DataOut: out}
		verdict, err := s.offload.prog.Run(&run)
		if err != nil {
			t.Fatal(err)
		}
		if dropped := verdict == actShot; dropped != (want == nil) {
			t.Fatalf("seed %d, packet %d: dropped %v, oracle %v\n%x", seed, i, dropped, v, packet)
		}
		if want != nil && !bytes.Equal(run.DataOut[14:], want) {
			t.Fatalf("seed %d, packet %d: sent\n%sgot\n%swant\n%s", seed, i, dump(packet), dump(run.DataOut[14:]), dump(want))
		}
	}
}

func equalStats(a, b OffloadStats) bool {
	return slices.Equal(a.Bounces, b.Bounces) && a.Encapsulated == b.Encapsulated && a.Passed == b.Passed &&
		a.Refused == b.Refused && a.NoPath == b.NoPath && a.TooLong == b.TooLong && a.Malformed == b.Malformed &&
		a.Flows == b.Flows && a.Flowcells == b.Flowcells
}
