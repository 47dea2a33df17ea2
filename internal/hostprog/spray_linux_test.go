package hostprog

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"weft/encap"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/lab"
	"weft/policy"
	"weft/topology"
)

// sprayed is a host with the program at its uplink, and the other end of the
// cable.
type sprayed struct {
	lab      *lab.Lab
	src, dst topology.Node // in different racks
	spray    *Spray
	oracle   sprayOracle
	out, far *kerneltest.Wire // at the host's uplink, at its edge switch
}

// sprayLab is a fabric of four cores whose links keep super-segments whole. The
// first test that needs it builds it, TestMain takes it down: each leaves it as it
// was.
func sprayLab(t testing.TB) *lab.Lab {
	t.Helper()
	kerneltest.NeedRoot(t)
	l, err := lab.Up(t.Context(), lab.Config{Name: kerneltest.SharedLab(), Topology: kerneltest.Topology(t, "fat-tree:k=4"),
		RateMbit: 1000, BurstBytes: 256 << 10, QueueBytes: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func newSprayed(t *testing.T, l *lab.Lab, name string) *sprayed {
	t.Helper()
	return newSprayedBy(t, l, name, encap.CarrierIPIP)
}

func newSprayedBy(t *testing.T, l *lab.Lab, name string, c encap.Carrier, edits ...func(*SprayConfig)) *sprayed {
	t.Helper()
	hosts := kerneltest.Hosts(l.Config.Topology)
	s := &sprayed{lab: l, src: hosts[0], dst: hosts[len(hosts)-1]}
	top := l.Config.Topology
	cfg := s.config(t, name)
	cfg.Carrier = c
	for _, edit := range edits {
		edit(&cfg)
	}
	s.attach(t, cfg)
	s.oracle = sprayOracle{own: cfg.Addresses, require: cfg.Require, table: mustTableBy(t, top, s.src.ID, cfg.Policy, c), mtu: 1500}
	host, edge := l.Namespace(s.src.ID), l.Namespace(top.EdgeOf(s.src.ID))
	s.out, s.far = kerneltest.OpenWire(t, host, "p0", edge, "p0"), kerneltest.OpenWire(t, edge, "p0", host, "p0")
	return s
}

// required is a configuration by which nothing leaves plain.
func required(c *SprayConfig) { c.Require = true }

func (s *sprayed) config(t testing.TB, policy string) SprayConfig {
	top := s.lab.Config.Topology
	return SprayConfig{Uplink: "p0", Addresses: []netip.Addr{s.src.Addr, top.EmbeddedAddr(s.src.ID)},
		Topology: top, Self: s.src.ID, Policy: mustPolicy(t, policy)}
}

func mustTable(t *testing.T, top *topology.Topology, self topology.NodeID, p policy.Policy) sprayTable {
	t.Helper()
	return mustTableBy(t, top, self, p, encap.CarrierIPIP)
}

func mustTableBy(t *testing.T, top *topology.Topology, self topology.NodeID, p policy.Policy, c encap.Carrier) sprayTable {
	t.Helper()
	table, err := newSprayTable(top, self, p, c)
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

func (s *sprayed) attach(t testing.TB, cfg SprayConfig) {
	t.Helper()
	err := s.lab.Do(s.src.ID, func() (err error) {
		s.spray, err = AttachSpray(cfg)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	o := s.spray
	t.Cleanup(func() {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	})
}

func (s *sprayed) stats(t testing.TB) SprayStats {
	t.Helper()
	st, err := s.spray.Stats()
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// counter is where a verdict is counted.
func (s *SprayStats) counter(v verdict) *uint64 {
	return []*uint64{encapsulated: &s.Encapsulated, passed: &s.Passed, noPath: &s.NoPath,
		tooLong: &s.TooLong, badLength: &s.Malformed}[v]
}

// check sends a packet, and a marker behind it that passes as it is: what has
// not come when the marker is there was dropped.
func (s *sprayed) check(t *testing.T, name string, packet []byte) {
	t.Helper()
	before := s.stats(t)
	way, v := s.oracle.judge(packet)
	s.send(t, packet, s.oracle.dropped(v))
	marker := kerneltest.IPv4{ID: 0x7777, TTL: 9, Protocol: 253, Src: netip.MustParseAddr("10.99.0.1"), Dst: s.dst.Addr}.Bytes(nil)
	s.out.Send(t, marker)
	got := s.receive(t)
	switch {
	case v == encapsulated:
		inner, _, _ := s.oracle.prepare(packet, 1, got)
		step := way.stepOf(inner, got)
		if step < 0 {
			t.Fatalf("%s: sent\n%sgot\n%swant, by some path,\n%s", name, dump(packet), dump(got), dump(way.wrap(inner, way.step(inner))))
		}
		before.add(way.bounce(step), Traffic{1, uint64(way.carrier.Overhead()) + uint64(binary.BigEndian.Uint16(inner[2:]))})
		got = s.receive(t)
	case !s.oracle.dropped(v):
		if !bytes.Equal(got, packet) {
			t.Fatalf("%s: sent\n%sgot\n%swant the same", name, dump(packet), dump(got))
		}
		got = s.receive(t)
	}
	if !bytes.Equal(got, marker) {
		t.Fatalf("%s: sent\n%sgot\n%swant nothing", name, dump(packet), dump(got))
	}
	*before.counter(v)++
	before.Passed++
	before.Flows, before.Flowcells = s.oracle.cut.counts()
	if got := s.stats(t); !equalStats(got, before) {
		t.Errorf("%s: counters\n%+v, want\n%+v", name, got, before)
	}
}

// add counts what went to a bouncing switch.
func (s *SprayStats) add(bounce netip.Addr, more Traffic) {
	for i := range s.Bounces {
		if s.Bounces[i].Addr == bounce {
			s.Bounces[i].Packets += more.Packets
			s.Bounces[i].Bytes += more.Bytes
		}
	}
}

// receive returns the next packet that came in at the far end: IPv4, or with
// labels.
func (s *sprayed) receive(t *testing.T) []byte {
	t.Helper()
	b := make([]byte, 70000)
	for {
		n, from, err := unix.Recvfrom(s.far.FD, b, 0)
		if err != nil {
			t.Fatalf("receive: %v", err)
		}
		if from.(*unix.SockaddrLinklayer).Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		switch binary.BigEndian.Uint16(b[12:]) {
		case unix.ETH_P_IP:
			return b[kernel.EthernetHeader:n]
		case unix.ETH_P_IPV6:
			if encap.SIDBlock.Contains(netip.AddrFrom16([16]byte(b[kernel.EthernetHeader+24:]))) {
				return b[kernel.EthernetHeader:n]
			}
		}
	}
}

// send tells whether the sender is told of a drop, as a program that sends would
// be.
func (s *sprayed) send(t *testing.T, packet []byte, dropped bool) {
	t.Helper()
	frame := slices.Concat(s.out.Far, s.out.Own, []byte{0x08, 0x00}, packet)
	if _, err := unix.Write(s.out.FD, frame); err != nil && !(dropped && errors.Is(err, unix.ENOBUFS)) {
		t.Fatal(err)
	}
}

func dump(b []byte) string { return hex.Dump(b[:min(len(b), 64)]) }

// Packets of all kinds leave as weft's own encapsulator makes them, by the path
// that the oracle says.
func TestSpray_equalsTheOracle(t *testing.T) {
	l := sprayLab(t)
	for _, c := range []encap.Carrier{encap.CarrierIPIP, encap.CarrierSRv6} {
		for i, name := range []string{"drb", "rrb", "presto", "flowcell-drb", "ecmp", "rb", "rand", "luopan"} {
			s := newSprayedBy(t, l, name, c, func(c *SprayConfig) { c.Require = i%2 == 1 })
			for _, p := range s.packets() {
				s.check(t, fmt.Sprintf("%s by %v: %s", name, c, p.name), p.bytes)
			}
			s.dst = kerneltest.Hosts(l.Config.Topology)[2] // of the same pod
			for id := range uint16(8) {
				s.check(t, fmt.Sprintf("%s by %v, within a pod", name, c), s.numberedSegment(id<<6))
			}
		}
	}
}

func TestSpray_equalsTheOracleOnNoise(t *testing.T) {
	l := sprayLab(t)
	for _, c := range []encap.Carrier{encap.CarrierIPIP, encap.CarrierSRv6} {
		onNoise(t, newSprayedBy(t, l, "flowcell-drb", c))
		onNoise(t, newSprayedBy(t, l, "flowcell-drb", c, required))
	}
}

func onNoise(t *testing.T, s *sprayed) {
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
		verdict, err := s.spray.at.Prog.Run(&run)
		if err != nil {
			t.Fatal(err)
		}
		if dropped := verdict == actShot; dropped != s.oracle.dropped(v) {
			t.Fatalf("seed %d, packet %d: dropped %v, oracle %v\n%x", seed, i, dropped, v, packet)
		}
		if want != nil && !bytes.Equal(run.DataOut[14:], want) {
			t.Fatalf("seed %d, packet %d: sent\n%sgot\n%swant\n%s", seed, i, dump(packet), dump(run.DataOut[14:]), dump(want))
		}
	}
}

// equalStats leaves out what is counted of drawn paths alone.
func equalStats(a, b SprayStats) bool {
	if a.Flowcells > 0 && b.Flowcells == 0 {
		a.Flows, a.Flowcells = 0, 0
	}
	sent := func(a, b BounceStats) bool { return a.Addr == b.Addr && a.Traffic == b.Traffic }
	return slices.EqualFunc(a.Bounces, b.Bounces, sent) && a.Encapsulated == b.Encapsulated && a.Passed == b.Passed &&
		a.Refused == b.Refused && a.NoPath == b.NoPath && a.TooLong == b.TooLong && a.Malformed == b.Malformed &&
		a.Plain == b.Plain && a.Unattended == b.Unattended && a.Broken == b.Broken &&
		a.Flows == b.Flows && a.Flowcells == b.Flowcells
}
