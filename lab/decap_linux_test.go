package lab

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/fabric"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/topology"
)

// bounce is the smallest fabric with a bounce in it: packets put on the wire
// between an aggregation switch and the core, looked at there, and at the host
// on the other side.
type bounce struct {
	lab              *Lab
	agg              *kerneltest.Wire // sends to the core
	core, host       *kerneltest.Wire
	coreID           topology.NodeID
	src, dst, coreIP netip.Addr
}

// newBounce is for tests that leave the lab as it was, but for its counters.
func newBounce(t *testing.T) *bounce {
	t.Helper()
	return bounceOn(t, sharedLab(t, Config{Name: kerneltest.LabName(sharedBounces), Topology: kerneltest.Topology(t, "fat-tree:k=2")}))
}

func bounceOn(t *testing.T, l *Lab) *bounce {
	t.Helper()
	top := l.Config.Topology
	find := func(name string) topology.Node {
		n, err := top.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	src, dst, agg, core := find("h0.0.2"), find("h1.0.2"), find("a0.1"), find("3.0")
	b := &bounce{lab: l, coreID: core.ID, src: src.Addr, dst: dst.Addr, coreIP: core.Addr}
	b.agg = openWire(t, l, agg.ID, 1)
	b.core = openWire(t, l, core.ID, 0)
	b.host = openWire(t, l, dst.ID, 0)
	return b
}

func (b *bounce) counters(t *testing.T) fabric.Counters {
	t.Helper()
	var c *fabric.Counters
	err := b.lab.Do(b.coreID, func() (err error) {
		h, err := netlink.NewHandle(kernel.Families...)
		if err != nil {
			return err
		}
		defer h.Close()
		ports, err := kernel.Links(h, []string{"p0", "p1"})
		if err != nil {
			return err
		}
		_, c, err = fabric.ReadDecap(h, ports)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if c == nil {
		t.Skip("the kernel's ipip device decapsulates here; it has no counters")
	}
	return *c
}

// inner is the packet inside; protocol 253 is for experiments, and the kernel
// has no handler that would answer.
func (b *bounce) inner() kerneltest.IPv4 {
	return kerneltest.IPv4{TOS: 0, ID: 0x1234, Frag: 0x4000, TTL: 17, Protocol: 253, Src: b.src, Dst: b.dst}
}

func (b *bounce) outer() kerneltest.IPv4 {
	return kerneltest.IPv4{ID: 1, Frag: 0x4000, TTL: 64, Protocol: 4, Src: b.src, Dst: b.coreIP}
}

// The inner packet arrives byte for byte but for three hops' worth of TTL, and
// its congestion mark is RFC 6040's.
func TestDecap_innerArrives(t *testing.T) {
	b := newBounce(t)
	const notECT, ect1, ect0, ce = 0, 1, 2, 3
	for _, c := range []struct{ outer, inner, want byte }{
		{notECT, notECT, notECT}, {notECT, ect0, ect0}, {notECT, ect1, ect1}, {notECT, ce, ce},
		{ect0, notECT, notECT}, {ect0, ect0, ect0}, {ect0, ect1, ect1}, {ect0, ce, ce},
		{ect1, notECT, notECT}, {ect1, ect0, ect1}, {ect1, ect1, ect1}, {ect1, ce, ce},
		{ce, ect0, ce}, {ce, ect1, ce}, {ce, ce, ce},
	} {
		before := b.counters(t)
		payload := bytes.Repeat([]byte("weft!"), 200)
		inner, outer := b.inner(), b.outer()
		inner.TOS, outer.TOS = 0x48|c.inner, 0x20|c.outer
		packet := outer.Bytes(inner.Bytes(payload))
		b.agg.Send(t, packet)

		seen := b.core.Receive(t)
		if !bytes.Equal(seen, packet) {
			t.Fatalf("at the core:\n%s", hex.Dump(seen[:48]))
		}
		if got := netip.AddrFrom4([4]byte(seen[16:20])); got != b.coreIP {
			t.Errorf("outer destination at the core is %s, want its /32 %s", got, b.coreIP)
		}
		want := inner
		want.TOS, want.TTL = 0x48|c.want, inner.TTL-3
		if got := b.host.Receive(t); !bytes.Equal(got, want.Bytes(payload)) {
			t.Errorf("outer ECN %d, inner %d: got\n%swant\n%s", c.outer, c.inner, hex.Dump(got[:20]), hex.Dump(want.Bytes(payload)[:20]))
		}
		before.Decapsulated++
		if got := b.counters(t); got != before {
			t.Errorf("counters %+v, want %+v", got, before)
		}
	}
}

func TestDecap_refused(t *testing.T) {
	b := newBounce(t)
	elsewhere := netip.MustParseAddr("10.0.0.99")
	nop := []byte{1, 1, 1, 0}
	payload := []byte("payload of the inner packet")
	for _, c := range []struct {
		name   string
		cause  func(*fabric.Counters) *uint64
		packet func(outer, inner kerneltest.IPv4) []byte
	}{
		{"other inner source", spoofed, func(o, i kerneltest.IPv4) []byte { i.Src = elsewhere; return o.Bytes(i.Bytes(payload)) }},
		{"nested", nested, func(o, i kerneltest.IPv4) []byte { return o.Bytes(o.Bytes(i.Bytes(payload))) }},
		{"congestion marked, inner not capable", ecn, func(o, i kerneltest.IPv4) []byte { o.TOS = 3; return o.Bytes(i.Bytes(payload)) }},
		{"outer options", malformed, func(o, i kerneltest.IPv4) []byte { o.Options = nop; return o.Bytes(i.Bytes(payload)) }},
		{"first fragment", malformed, func(o, i kerneltest.IPv4) []byte { o.Frag = 0x2000; return o.Bytes(i.Bytes(payload)) }},
		{"last fragment", malformed, func(o, i kerneltest.IPv4) []byte { o.Frag = 100; return o.Bytes(i.Bytes(payload)) }},
		{"outer checksum", malformed, func(o, i kerneltest.IPv4) []byte { p := o.Bytes(i.Bytes(payload)); p[10] ^= 1; return p }},
		{"inner truncated", malformed, func(o, i kerneltest.IPv4) []byte { return o.Bytes(i.Bytes(nil)[:19]) }},
		{"inner missing", malformed, func(o, i kerneltest.IPv4) []byte { return o.Bytes(nil) }},
		{"inner not IPv4", malformed, func(o, i kerneltest.IPv4) []byte { p := i.Bytes(payload); p[0] = 0x65; return o.Bytes(p) }},
		{"inner header length", malformed, func(o, i kerneltest.IPv4) []byte { p := i.Bytes(payload); p[0] = 0x44; return o.Bytes(p) }},
		{"inner longer than outer", malformed, func(o, i kerneltest.IPv4) []byte {
			p := i.Bytes(payload)
			binary.BigEndian.PutUint16(p[2:], uint16(len(p)+1))
			return o.Bytes(p)
		}},
	} {
		want := b.counters(t)
		b.agg.Send(t, c.packet(b.outer(), b.inner()))
		*c.cause(&want)++
		// A good packet behind it: when that is there, the bad one is not late.
		marker := b.inner()
		marker.ID = 0x7777
		b.agg.Send(t, b.outer().Bytes(marker.Bytes(nil)))
		want.Decapsulated++
		if got := b.host.Receive(t); binary.BigEndian.Uint16(got[4:]) != marker.ID {
			t.Errorf("%s: arrived:\n%s", c.name, hex.Dump(got))
			b.host.Receive(t)
		}
		if got := b.counters(t); got != want {
			t.Errorf("%s: counters %+v, want %+v", c.name, got, want)
		}
	}
}

func spoofed(c *fabric.Counters) *uint64   { return &c.Spoofed }
func nested(c *fabric.Counters) *uint64    { return &c.Nested }
func ecn(c *fabric.Counters) *uint64       { return &c.ECN }
func malformed(c *fabric.Counters) *uint64 { return &c.Malformed }

// Each CPU counts for itself; the counters are the sum.
func TestDecap_countsOnEveryCPU(t *testing.T) {
	b := newBounce(t)
	before := b.counters(t)
	var home, one unix.CPUSet
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.SchedGetaffinity(0, &home); err != nil {
		t.Fatal(err)
	}
	defer unix.SchedSetaffinity(0, &home)
	sent := uint64(0)
	for cpu := range len(home) * 64 {
		if !home.IsSet(cpu) {
			continue
		}
		one.Zero()
		one.Set(cpu)
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			t.Fatal(err)
		}
		b.agg.Send(t, b.outer().Bytes(b.inner().Bytes(nil)))
		b.host.Receive(t)
		sent++
	}
	if got := b.counters(t).Decapsulated - before.Decapsulated; got != sent {
		t.Errorf("%d decapsulated, want %d", got, sent)
	}
}

// IP-in-IP for others is forwarded like anything else.
func TestDecap_notForUs(t *testing.T) {
	b := newBounce(t)
	before := b.counters(t)
	outer := b.outer()
	outer.Dst = b.dst
	b.agg.Send(t, outer.Bytes(b.inner().Bytes(nil)))
	outer.TTL -= 3
	if got, want := b.host.Receive(t), outer.Bytes(b.inner().Bytes(nil)); !bytes.Equal(got, want) {
		t.Errorf("got\n%swant\n%s", hex.Dump(got), hex.Dump(want))
	}
	if got := b.counters(t); got != before {
		t.Errorf("counters went from %+v to %+v", before, got)
	}
}

// Counters and program must outlive the handle that made them, and a second
// Apply must not reset them.
func TestDecap_survivesApply(t *testing.T) {
	b := bounceOn(t, upLab(t, Config{Topology: kerneltest.Topology(t, "fat-tree:k=2")}))
	b.counters(t)
	b.agg.Send(t, b.outer().Bytes(b.inner().Bytes(nil)))
	b.host.Receive(t)
	plan := nodePlan(t, b.lab.Config.Topology, "3.0")
	err := b.lab.Do(b.coreID, func() error {
		r, err := fabric.Apply(plan)
		if r.Changed != 0 {
			t.Errorf("%d changes", r.Changed)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := b.counters(t); got.Decapsulated != 1 {
		t.Errorf("%d decapsulated, want 1", got.Decapsulated)
	}
	// Another address: the program stays, and no longer takes the old one's.
	plan.Bouncing = []netip.Addr{netip.MustParseAddr("10.2.9.9")}
	err = b.lab.Do(b.coreID, func() error {
		r, err := fabric.Apply(plan)
		if r.Changed != 3 {
			t.Errorf("%d changes, want 3: the program has one address less and one more, lo one more", r.Changed)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	b.agg.Send(t, b.outer().Bytes(b.inner().Bytes(nil)))
	if got := b.counters(t); got.Decapsulated != 1 {
		t.Errorf("%d decapsulated, want still 1", got.Decapsulated)
	}
}
