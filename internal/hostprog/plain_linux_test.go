package hostprog

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// Plain racks are so, and no others, across changes of the topology.
func TestSpray_setPlain(t *testing.T) {
	u := newUplinkTest(t)
	u.cfg.StartPlain = true
	u.attach(t)
	top := u.cfg.Topology
	hosts := kerneltest.Hosts(top)
	near, far := hosts[2].Addr, hosts[len(hosts)-1].Addr // of two other racks
	want := func(what string, nearProto, farProto byte) {
		t.Helper()
		if a, b := u.protocol(t, near), u.protocol(t, far); a != nearProto || b != farProto {
			t.Errorf("%s: protocols %d and %d, want %d and %d", what, a, b, nearProto, farProto)
		}
	}
	only := func(rack netip.Prefix) func(netip.Prefix) bool {
		return func(r netip.Prefix) bool { return r == rack }
	}
	set := func(plain func(netip.Prefix) bool) {
		t.Helper()
		if err := u.spray.SetPlain(plain); err != nil {
			t.Fatal(err)
		}
	}
	want("from the start", 6, 6)
	set(only(rackOf(far)))
	want("one proved", 4, 6)
	core, _ := top.Lookup("3.1")
	for _, now := range []func() error{
		func() error { return u.spray.SetTopology(top.WithoutNode(core.ID)) },
		func() error { return u.spray.SetTopology(top) },
	} {
		if err := now(); err != nil {
			t.Fatal(err)
		}
		want("another topology", 4, 6)
	}
	set(only(rackOf(near)))
	want("the other", 6, 4)
	set(func(netip.Prefix) bool { return false })
	want("both", 4, 4)
	st, err := u.spray.Stats()
	if err != nil || st.Plain != 2+1+2+1 || st.Encapsulated != 1+2+1+2 {
		t.Errorf("%+v, %v; want 6 plain and 6 encapsulated", st, err)
	}
	for i := range 300 { // the table does not fill up
		set(func(netip.Prefix) bool { return i%2 == 0 })
	}
	want("after many changes", 4, 4)
	if n := len(u.spray.ways.known.groups); n > len(u.spray.ways.all) {
		t.Errorf("%d groups for %d racks", n, len(u.spray.ways.all))
	}
}

// A flow begins a new flowcell after its rack was plain: what went plain is missing
// from the former one.
func TestSpray_plainEndsFlowcells(t *testing.T) {
	u := newUplinkTest(t)
	u.cfg.Policy, u.cfg.Cut = mustPolicy(t, "presto"), u.cfg.Addresses
	u.attach(t)
	cells := func(want uint64) {
		t.Helper()
		u.sprays(t)
		st, err := u.spray.Stats()
		if err != nil || st.Flowcells != want {
			t.Errorf("%d flowcells, %v; want %d", st.Flowcells, err, want)
		}
	}
	cells(1)
	cells(1)
	for i := range uint64(2) {
		if err := u.spray.SetPlain(func(netip.Prefix) bool { return true }); err != nil {
			t.Fatal(err)
		}
		cells(1 + i)
		if err := u.spray.SetPlain(func(netip.Prefix) bool { return false }); err != nil {
			t.Fatal(err)
		}
		cells(2 + i)
	}
}

// A program that begins with what another one carried encapsulates its first packet, before
// anybody beats: attaching may take longer than its patience.
func TestSpray_startsCarried(t *testing.T) {
	u := newUplinkTest(t)
	u.cfg.Patience, u.cfg.StartPlain = time.Millisecond, true
	u.cfg.StartCarried = func(netip.Prefix) bool { return true }
	u.attach(t)
	if !u.sprays(t) {
		t.Error("the first packet goes plain")
	}
	if st, err := u.spray.Stats(); err != nil || st.Unattended != 0 {
		t.Errorf("%+v, %v", st, err)
	}
}

// Packets are encapsulated while the process beats, and leave as they are before that
// and when it is silent.
func TestSpray_failsOpen(t *testing.T) {
	u := newUplinkTest(t)
	u.cfg.Patience = 200 * time.Millisecond
	u.attach(t)
	at := func(d time.Duration) {
		t.Helper()
		now, err := kernel.Monotonic()
		if err != nil {
			t.Fatal(err)
		}
		if err := u.spray.heart.set(now+uint64(d), errSprayClosed); err != nil {
			t.Fatal(err)
		}
	}
	if u.sprays(t) {
		t.Error("sprayed before the first Beat")
	}
	at(time.Hour)
	if !u.sprays(t) {
		t.Error("not sprayed behind a heartbeat")
	}
	at(-201 * time.Millisecond)
	if u.sprays(t) {
		t.Error("sprayed although nobody attends")
	}
	if st, err := u.spray.Stats(); err != nil || st.Unattended != 2 || st.Encapsulated != 1 {
		t.Errorf("%+v, %v", st, err)
	}
	kerneltest.Within(t, kerneltest.Patience, "sprayed behind a Beat", func() bool {
		if err := u.spray.Beat(); err != nil {
			t.Fatal(err)
		}
		return u.sprays(t)
	})
	if err := u.spray.Lease(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	if !u.sprays(t) {
		t.Error("not sprayed during a lease")
	}
	// Beat does not wait for who holds the Spray.
	u.spray.mu.Lock()
	err := u.spray.Beat()
	u.spray.mu.Unlock()
	if err != nil {
		t.Error(err)
	}
	if n := testing.AllocsPerRun(10, func() { u.spray.Beat() }); n > 2 {
		t.Errorf("%v allocations a heartbeat", n)
	}
	if err := errors.Join(u.spray.Close()); err != nil || u.spray.Beat() != errSprayClosed {
		t.Errorf("closed: %v, %v", err, u.spray.Beat())
	}
}

// Who requires encapsulation gets no plain packets from a silence.
func TestSpray_require(t *testing.T) {
	u := newUplinkTest(t)
	u.cfg.Patience, u.cfg.Require = time.Millisecond, true
	u.attach(t)
	if !u.sprays(t) {
		t.Error("not sprayed")
	}
	if err := u.spray.SetPlain(func(netip.Prefix) bool { return true }); err == nil || !strings.Contains(err.Error(), "Require") {
		t.Errorf("SetPlain: %v", err)
	}
	u.cfg.StartPlain = true
	if _, err := AttachSpray(u.cfg); err == nil || !strings.Contains(err.Error(), "StartPlain with Require") {
		t.Errorf("%v", err)
	}
	u.cfg.StartPlain, u.cfg.Patience = false, -1
	if _, err := AttachSpray(u.cfg); err == nil || !strings.Contains(err.Error(), "Patience is -1ns") {
		t.Errorf("%v", err)
	}
}

// Without live paths packets leave as they are; a route whose MTU leaves no room costs
// the spraying, not the connection.
func TestSpray_leavesPlainWhatItCannotEncapsulate(t *testing.T) {
	s := newSprayed(t, sprayLab(t), "drb")
	before := s.stats(t)
	s.cubic(t, 1<<20) // by routes of the uplink's MTU
	if st := s.stats(t); st.TooLong <= before.TooLong {
		t.Errorf("%+v: nothing was too long", st)
	}
}

// Nor is what has no path dropped; if it is required, it is.
func TestSpray_noPath(t *testing.T) {
	u := newUplinkTest(t)
	for _, require := range []bool{false, true} {
		u.cfg.Require = require
		u.attach(t)
		for n := uint32(1); n <= u.spray.ways.last; n++ {
			if err := u.spray.ways.groups.Put(n, &groupValue{Number: n}); err != nil {
				t.Fatal(err)
			}
		}
		packet := kerneltest.IPv4{ID: 1, Frag: 0x4000, TTL: 9, Protocol: 6, Src: u.cfg.Addresses[0], Dst: topLast(u.cfg)}.Bytes(make([]byte, 20))
		verdict, err := u.spray.at.Prog.Run(&ebpf.RunOptions{Data: frameOf(packet)})
		if dropped := verdict == actShot; err != nil || dropped != require {
			t.Errorf("require %t: verdict %d, %v", require, verdict, err)
		}
		if st, err := u.spray.Stats(); err != nil || st.NoPath != 1 {
			t.Errorf("%+v, %v", st, err)
		}
	}
}
