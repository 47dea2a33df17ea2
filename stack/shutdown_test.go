package stack

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Shutdown right after Close of a connection delivers all that was written to it.
// Close of the Host, which comes first here, is what shows that it has something
// to wait for.
func TestHostShutdown_deliversWhatWasWritten(t *testing.T) {
	const size = 2 << 20
	for _, c := range []struct {
		name string
		end  func(*Host) error
		all  bool
	}{
		{"close", (*Host).Close, false},
		{"shutdown", func(h *Host) error { return h.Shutdown(context.Background()) }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWire(t)
			a, b := newHost(t, w, addrA), newHost(t, w, addrB)
			c1, c2 := connect(t, a, b)
			sent := bytes.Repeat([]byte("weft"), size/4)
			if _, err := c1.Write(sent); err != nil { // fits the send buffer
				t.Fatal(err)
			}
			var read sync.WaitGroup
			var got []byte
			var err error
			begin := make(chan struct{})
			read.Go(func() {
				<-begin // the receive buffer is smaller
				got, err = io.ReadAll(c2)
				c2.Close()
			})
			c1.Close()
			if c.all {
				close(begin)
			}
			if err := c.end(a); err != nil {
				t.Error(err)
			}
			if !c.all {
				close(begin)
			}
			read.Wait()
			if all := err == nil && bytes.Equal(got, sent); all != c.all {
				t.Errorf("%d bytes of %d arrived, %v", len(got), size, err)
			}
		})
	}
}

func TestHostShutdown_waitsForOpenConnections(t *testing.T) {
	w := newWire(t)
	a, b := newHost(t, w, addrA), newHost(t, w, addrB)
	l, err := a.Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	c2, err := b.Dial("tcp", "10.0.0.130:80")
	if err != nil {
		t.Fatal(err)
	}
	c1, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	accept := make(chan error, 1)
	go func() { _, err := l.Accept(); accept <- err }()
	done := make(chan error, 1)
	go func() { done <- a.Shutdown(context.Background()) }()
	if err := <-accept; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept during Shutdown: %v", err)
	}
	if _, err := a.Listen("tcp", ":81"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Listen during Shutdown: %v", err)
	}
	// Accept ends just before the port does. A connection in between is reset.
	for began := time.Now(); ; {
		c, err := b.Dial("tcp", "10.0.0.130:80")
		if errors.Is(err, syscall.ECONNREFUSED) {
			break
		}
		if err != nil || time.Since(began) > 10*time.Second {
			t.Fatalf("a new connection during Shutdown: %v", err)
		}
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("a connection that nobody accepted delivers")
		}
		c.Close()
	}
	// What is open works on, both ways.
	for _, pair := range [][2]net.Conn{{c1, c2}, {c2, c1}} {
		pair[0].Write([]byte("hello"))
		if _, err := io.ReadFull(pair[1], make([]byte, 5)); err != nil {
			t.Errorf("during Shutdown: %v", err)
		}
	}
	select {
	case err := <-done:
		t.Fatalf("Shutdown returned with a connection open: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	c1.Close()
	if _, err := c2.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the peer read %v, want a clean end", err)
	}
	c2.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := a.Shutdown(context.Background()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Shutdown again: %v", err)
	}
	if _, err := a.Dial("tcp", "10.3.1.131:80"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Dial after Shutdown: %v", err)
	}
}

func TestHostShutdown_endsWithItsContext(t *testing.T) {
	w := newWire(t)
	a, b := newHost(t, w, addrA), newHost(t, w, addrB)
	_, c2 := connect(t, a, b) // never closed
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	err := a.Shutdown(ctx)
	if want := "1 TCP connections were not finished"; !errors.Is(err, context.Canceled) || !bytes.Contains([]byte(err.Error()), []byte(want)) {
		t.Errorf("%v, want one that wraps context.Canceled and says %q", err, want)
	}
	if _, err := c2.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the peer read %v, want a reset", err)
	}
	if _, err := a.Listen("tcp", ":80"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Listen: %v", err)
	}
}

func TestHostShutdown_endsWithItsDevice(t *testing.T) {
	w := newWire(t)
	dev := brokenDevice{w.plug(addrA), make(chan struct{})}
	h := mustNew(t, Config{Address: addrA, Topology: fatTree, Device: dev})
	c1, err := h.Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	defer c1.Close()
	own, err := h.Dial("tcp", ":80") // stays open
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if _, err := c1.Accept(); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(20*time.Millisecond, func() { close(dev.cut) })
	if err := h.Shutdown(context.Background()); !errors.Is(err, errDevice) {
		t.Errorf("%v, want %v", err, errDevice)
	}
}

// In virtual time Shutdown tells when there is nothing to wait for.
func TestVirtual_shutdown(t *testing.T) {
	w, a, b := newVirtual(t, 1)
	c1, c2 := virtualConnect(t, w, a, b)
	c1.Write(make([]byte, 1000))
	for range 3 {
		if err := a.Shutdown(context.Background()); !errors.Is(err, syscall.EAGAIN) {
			t.Fatalf("a connection is open: %v", err)
		}
	}
	w.drop = func(p []byte) bool { return netip.AddrFrom4([4]byte(p[12:16])) == addrB }
	c1.Close()
	w.Run(time.Second)
	if err := a.Shutdown(context.Background()); !errors.Is(err, syscall.EAGAIN) {
		t.Fatalf("nothing is acknowledged: %v", err)
	}
	w.drop = nil
	w.Run(5 * time.Second)
	if err := a.Shutdown(context.Background()); !errors.Is(err, syscall.EAGAIN) {
		t.Fatalf("the peer has not closed: %v", err)
	}
	if n, err := c2.Read(make([]byte, 2000)); n != 1000 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	c2.Close()
	w.Run(10 * wireDelay)
	if err := a.Shutdown(context.Background()); err != nil {
		t.Errorf("all is done: %v", err)
	}
}

func TestHostShutdown_leaksNothing(t *testing.T) {
	wantFlat(t, rounds(500, 350), func() {
		hosts := neighbours(t, func(*Config) {})
		to, accepted := listen(t, hosts[1], "80")
		near, far := exchange(t, hosts[0], to, accepted)
		near.Close()
		far.Close()
		for _, h := range hosts {
			if err := h.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		}
		<-accepted
	})
}
