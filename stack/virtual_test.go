package stack

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"weft/encap"
	"weft/internal/slowtest"
)

// virtualWire carries packets from host to host in 10 µs of a clock's time.
type virtualWire struct {
	handClock
	hosts map[netip.Addr]*Host
	log   bytes.Buffer              // every packet, as it was written
	drop  func(packet []byte) bool  // inner packets; nil: nothing is dropped
	late  func(packet []byte) bool  // takes a millisecond longer
	reads int                       // of devices
	sent  map[netip.Addr][][]byte   // by sender: inner packets
	seen  func(outer, inner []byte) // what is encapsulated; nil: nobody looks
}

const wireDelay = 10 * time.Microsecond

type virtualDevice struct{ wire *virtualWire }

func (d virtualDevice) Write(bufs [][]byte, offset int) (int, error) {
	w := d.wire
	for _, b := range bufs {
		b = slices.Clone(b[offset:])
		w.log.Write(b)
		if inner, err := encap.Decapsulate(slices.Clone(b)); err == nil {
			if w.seen != nil {
				w.seen(b, inner)
			}
			b = inner
		}
		from := netip.AddrFrom4([4]byte(b[12:16]))
		w.sent[from] = append(w.sent[from], b)
		to := w.hosts[netip.AddrFrom4([4]byte(b[16:20]))]
		if to == nil || w.drop != nil && w.drop(b) {
			continue
		}
		delay := wireDelay
		if w.late != nil && w.late(b) {
			delay += time.Millisecond
		}
		w.AfterFunc(delay, func() { to.Receive(b) })
	}
	return len(bufs), nil
}

func (d virtualDevice) Read([][]byte, []int, int) (int, error) {
	d.wire.reads++
	return 0, net.ErrClosed
}
func (d virtualDevice) MTU() int     { return 1500 }
func (d virtualDevice) Close() error { return nil }

// newVirtual returns two hosts in virtual time.
func newVirtual(t *testing.T, seed uint64, change ...func(*Config)) (w *virtualWire, a, b *Host) {
	t.Helper()
	w = &virtualWire{hosts: map[netip.Addr]*Host{}, sent: map[netip.Addr][][]byte{}}
	for _, addr := range []netip.Addr{addrA, addrB} {
		c := Config{Address: addr, Topology: fatTree, Device: virtualDevice{w}, Simulation: Simulation{Seed: seed, Clock: w}}
		for _, f := range change {
			f(&c)
		}
		h, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Close() })
		w.hosts[addr] = h
	}
	return w, w.hosts[addrA], w.hosts[addrB]
}

// virtualConnect returns both ends of a connection, connected.
func virtualConnect(t *testing.T, w *virtualWire, a, b *Host) (net.Conn, net.Conn) {
	t.Helper()
	l, err := b.Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	c1, err := a.DialContext(context.Background(), "tcp", netip.AddrPortFrom(b.Address(), 80).String())
	if err != nil {
		t.Fatal(err)
	}
	w.Run(4 * wireDelay)
	c2, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return c1, c2
}

func TestVirtual_nothingWaits(t *testing.T) {
	w, a, b := newVirtual(t, 1)
	l, err := b.Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Accept(); !errors.Is(err, syscall.EAGAIN) {
		t.Errorf("Accept before anybody dials: %v", err)
	}
	c1, err := a.DialContext(context.Background(), "tcp", "10.3.1.131:80")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c1.Write([]byte("x")); !errors.Is(err, syscall.EAGAIN) {
		t.Errorf("Write while connecting: %v", err)
	}
	if _, err := c1.Read(make([]byte, 1)); !errors.Is(err, syscall.EAGAIN) {
		t.Errorf("Read while connecting: %v", err)
	}
	if c1.LocalAddr().(*net.TCPAddr).Port == 0 {
		t.Error("a connection that is connecting has no port")
	}
	w.Run(4 * wireDelay)
	c2, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c2.Read(make([]byte, 1)); !errors.Is(err, syscall.EAGAIN) {
		t.Errorf("Read before anything is sent: %v", err)
	}
	if n, err := c1.Write([]byte("hello")); n != 5 || err != nil {
		t.Errorf("Write: %d, %v", n, err)
	}
	w.Run(2 * wireDelay)
	got := make([]byte, 10)
	if n, err := c2.Read(got); string(got[:n]) != "hello" || err != nil {
		t.Errorf("Read: %q, %v", got[:n], err)
	}
	if w.reads > 0 {
		t.Errorf("the device was read %d times", w.reads)
	}
}

func TestVirtual_transfersMoreThanTheBuffersHold(t *testing.T) {
	slowtest.System(t)
	w, a, b := newVirtual(t, 1)
	c1, c2 := virtualConnect(t, w, a, b)
	data := make([]byte, 20<<20)
	rand.NewChaCha8([32]byte{1}).Read(data)
	var got []byte
	buf := make([]byte, 1<<20)
	partial := false
	for sent, end := 0, false; !end; w.Run(wireDelay) {
		if sent < len(data) {
			n, err := c1.Write(data[sent:])
			sent += n
			switch {
			case err == nil:
				c1.Close()
			case !errors.Is(err, syscall.EAGAIN):
				t.Fatal(err)
			case n > 0:
				partial = true
			}
		}
		for {
			n, err := c2.Read(buf)
			got = append(got, buf[:n]...)
			if end = err == io.EOF; end || errors.Is(err, syscall.EAGAIN) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if w.Now() > time.Minute {
			t.Fatalf("%d bytes of %d after a minute", len(got), len(data))
		}
	}
	if !bytes.Equal(got, data) {
		t.Error("the bytes arrived changed")
	}
	if !partial {
		t.Error("no Write was partial: the test is too small")
	}
}

// Netstack's timers are those of the clock: a lost SYN is sent again after one
// virtual second.
func TestVirtual_timersFollowTheClock(t *testing.T) {
	w, a, b := newVirtual(t, 1)
	lost := 0
	w.drop = func([]byte) bool { lost++; return lost == 1 }
	l, _ := b.Listen("tcp", ":80")
	if _, err := a.DialContext(context.Background(), "tcp", "10.3.1.131:80"); err != nil {
		t.Fatal(err)
	}
	w.Run(time.Second - time.Microsecond)
	if n := len(w.sent[addrA]); n != 1 {
		t.Errorf("%d packets within a second, want 1", n)
	}
	w.Run(time.Microsecond + 4*wireDelay)
	if _, err := l.Accept(); err != nil {
		t.Errorf("a second later: %v", err)
	}
}

// So is the resequencer's: what waits for a hole comes out when its hold is
// over.
func TestVirtual_resequencerFollowsTheClock(t *testing.T) {
	w, a, b := newVirtual(t, 1)
	c1, c2 := virtualConnect(t, w, a, b)
	c1.Write([]byte("one "))
	w.Run(2 * wireDelay)
	w.late = func(p []byte) bool { return bytes.Contains(p, []byte("two")) }
	c1.Write([]byte("two "))
	c1.Write([]byte("three"))
	w.Run(2 * wireDelay)
	if s := b.Stats().Resequencer; s.HeldPackets != 1 {
		t.Fatalf("%d packets held, want 1: %+v", s.HeldPackets, s)
	}
	w.Run(time.Millisecond)
	got := make([]byte, 20)
	if n, _ := c2.Read(got); string(got[:n]) != "one two three" {
		t.Errorf("read %q", got[:n])
	}
	if s := b.Stats().Resequencer; s.Filled != 1 || s.HeldPackets != 0 {
		t.Errorf("%+v", s)
	}
	w.drop = func(p []byte) bool { return bytes.Contains(p, []byte("four")) }
	c1.Write([]byte("four"))
	c1.Write([]byte("five"))
	w.Run(2 * wireDelay)
	held := b.Stats().Resequencer.HeldPackets
	w.Run(10 * time.Millisecond) // the longest hold
	if s := b.Stats().Resequencer; held != 1 || s.TimedOut == 0 || s.HeldPackets != 0 {
		t.Errorf("%d held, later %+v", held, s)
	}
}

func TestVirtual_notify(t *testing.T) {
	w, a, b := newVirtual(t, 1)
	l, _ := b.Listen("tcp", ":80")
	var calls []string
	note := func(s string) func() { return func() { calls = append(calls, s) } }
	l.(Notifier).Notify(note("accept"))
	c1, _ := a.DialContext(context.Background(), "tcp", "10.3.1.131:80")
	c1.(Notifier).Notify(note("connected"))
	w.Run(4 * wireDelay)
	if want := []string{"connected", "accept"}; !slices.Equal(calls, want) {
		t.Errorf("%v, want %v", calls, want)
	}
	c2, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	calls = nil
	c2.(Notifier).Notify(note("replaced"))
	c2.(Notifier).Notify(note("read"))
	c1.Write([]byte("x"))
	w.Run(2 * wireDelay)
	if !slices.Contains(calls, "read") || slices.Contains(calls, "replaced") {
		t.Errorf("%v", calls)
	}
}

func TestVirtual_refusedConnection(t *testing.T) {
	w, a, _ := newVirtual(t, 1)
	c, err := a.DialContext(context.Background(), "tcp", "10.3.1.131:81")
	if err != nil {
		t.Fatal(err)
	}
	told := false
	c.(Notifier).Notify(func() { told = true })
	w.Run(2 * wireDelay)
	if _, err := c.Write([]byte("x")); !told || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("told %v, error %v", told, err)
	}
}

func TestVirtual_noDeadlines(t *testing.T) {
	w, a, b := newVirtual(t, 1)
	c, _ := virtualConnect(t, w, a, b)
	if err := c.SetDeadline(time.Now()); !errors.Is(err, os.ErrNoDeadline) {
		t.Errorf("SetDeadline: %v", err)
	}
}

func TestVirtual_datagrams(t *testing.T) {
	w, a, b := newVirtual(t, 1)
	s, err := b.ListenPacket("udp", ":53")
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 10)
	if _, _, err := s.ReadFrom(buf); !errors.Is(err, syscall.EAGAIN) {
		t.Errorf("ReadFrom: %v", err)
	}
	c, err := a.DialContext(context.Background(), "udp", "10.3.1.131:53")
	if err != nil {
		t.Fatal(err)
	}
	c.Write([]byte("query"))
	w.Run(wireDelay)
	if n, _, err := s.ReadFrom(buf); string(buf[:n]) != "query" || err != nil {
		t.Errorf("ReadFrom: %q, %v", buf[:n], err)
	}
}

// A connection to oneself never leaves netstack: all of it happens before the
// calls return.
func TestVirtual_toItself(t *testing.T) {
	w, a, _ := newVirtual(t, 1)
	for _, procs := range []int{1, 4} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		c1, c2 := virtualConnect(t, w, a, a)
		for range 100 {
			if _, err := c1.Write([]byte("hello")); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, 10)
			if n, err := c2.Read(got); string(got[:n]) != "hello" || err != nil {
				t.Fatalf("%q, %v", got[:n], err)
			}
		}
		w, a, _ = newVirtual(t, 1) // with as many processors as there are now
	}
}

func TestVirtual_sameSeedSamePackets(t *testing.T) {
	run := func(seed uint64) string {
		w, a, b := newVirtual(t, seed)
		c1, c2 := virtualConnect(t, w, a, b)
		drops := rand.New(rand.NewPCG(1, 1))
		w.drop = func([]byte) bool { return drops.IntN(50) == 0 }
		buf := make([]byte, 1<<20)
		for sent := 0; sent < 1<<20; {
			n, _ := c1.Write(buf[:1<<20-sent])
			sent += n
			w.Run(wireDelay)
			c2.Read(buf)
		}
		w.Run(time.Second)
		return w.log.String()
	}
	first := run(1)
	for range 3 {
		if run(1) != first {
			t.Fatal("the same seed gave other packets")
		}
	}
	if run(2) == first {
		t.Error("the seed makes no difference")
	}
}

// RACK takes what was sent at the same time as something that was acknowledged
// for lost, so no two readings of the clock may be the same.
func TestVirtual_netstackReadsNoTimeTwice(t *testing.T) {
	var c handClock
	v := netstackClock{&virtual{clock: &c}}
	last := v.NowMonotonic()
	for i := range 1000 {
		if i%100 == 0 {
			c.Run(50)
		}
		now := v.NowMonotonic()
		if !now.After(last) {
			t.Fatalf("reading %d: %v after %v", i, now, last)
		}
		last = now
	}
	c.Run(time.Second)
	before := v.Now()
	c.Run(time.Second)
	if d := v.Now().Sub(before); d != time.Second {
		t.Errorf("a second took %v", d)
	}
}

func TestVirtualClose_leavesNoGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	w, a, b := newVirtual(t, 1)
	c1, c2 := virtualConnect(t, w, a, b)
	c1.Write(make([]byte, 1<<20))
	w.Run(wireDelay)
	a.Close()
	if _, err := c1.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Write after Close: %v", err)
	}
	w.Run(time.Minute) // the timers of what is gone do nothing
	a.Receive(w.sent[addrB][0])
	b.Close()
	if _, err := c2.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read after Close: %v", err)
	}
	// A goroutine that has done its work may still be about to end.
	eventually(t, "no more goroutines than before", func() bool { return runtime.NumGoroutine() <= before })
}
