package wire

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// end is a namespace with one end of each of several cables, p0, p1, ...; what is
// open stays there. It goes away with its thread.
type end struct {
	t       testing.TB
	work    chan func()
	ns      netns.NsHandle
	address netip.Addr
}

func newEnd(t testing.TB, address string) *end {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes network namespaces")
	}
	e := &end{t: t, work: make(chan func())}
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			e.ns, err = netns.Get()
		}
		made <- err
		for f := range e.work {
			f()
		}
	}()
	if err := <-made; err != nil {
		t.Skipf("network namespaces: %v", err)
	}
	t.Cleanup(func() {
		close(e.work)
		e.ns.Close()
	})
	e.must(func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil || address == "" {
			return err
		}
		e.address = netip.MustParseAddr(address)
		if err := netlink.AddrAdd(lo, &netlink.Addr{IPNet: &net.IPNet{IP: e.address.AsSlice(), Mask: net.CIDRMask(32, 32)}}); err != nil {
			return err
		}
		return netlink.LinkSetUp(lo)
	})
	return e
}

func (e *end) must(f func() error) {
	e.t.Helper()
	done := make(chan error)
	e.work <- func() { done <- f() }
	if err := <-done; err != nil {
		e.t.Fatal(err)
	}
}

// cable joins two ends; index is that of the first one's device.
func cable(t testing.TB, a, b *end, name string, index int) {
	t.Helper()
	a.must(func() error {
		veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name, Index: index}, PeerName: name, PeerNamespace: netlink.NsFd(b.ns)}
		return netlink.LinkAdd(veth)
	})
	a.set(name, true)
	b.set(name, true)
	a.running(name)
	b.running(name)
}

// running waits until a device can send.
func (e *end) running(name string) {
	e.t.Helper()
	e.must(func() error {
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
			l, err := netlink.LinkByName(name)
			if err != nil || l.Attrs().RawFlags&carrier == carrier {
				return err
			}
		}
		return fmt.Errorf("%s has no carrier", name)
	})
}

func (e *end) set(name string, up bool) {
	e.t.Helper()
	e.must(func() error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		if up {
			return netlink.LinkSetUp(l)
		}
		return netlink.LinkSetDown(l)
	})
}

// flap sets a device down and up many times.
func (e *end) flap(name string) {
	e.t.Helper()
	for range 50 {
		e.set(name, false)
		e.set(name, true)
	}
}

func (e *end) remove(name string) {
	e.t.Helper()
	e.must(func() error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		return netlink.LinkDel(l)
	})
}

// open opens ports and collects what they tell.
func (e *end) open(c Config) *recorder {
	e.t.Helper()
	r := &recorder{t: e.t}
	e.must(func() (err error) {
		r.Ports, err = Open(c)
		return err
	})
	e.t.Cleanup(func() { r.Close() })
	return r
}

// recorder is a Handler.
type recorder struct {
	*Ports
	t        testing.TB
	events   []event
	messages []message
}

type event struct {
	port int
	up   bool
}

type message struct {
	port int
	text string
}

func (r *recorder) Carrier(port int, up bool) { r.events = append(r.events, event{port, up}) }
func (r *recorder) Receive(port int, _ netip.Addr, text []byte) {
	r.messages = append(r.messages, message{port, string(text)})
}

// until waits until something holds.
func (r *recorder) until(what string, ok func() bool) {
	r.t.Helper()
	end := time.Now().Add(time.Minute)
	for !ok() {
		if time.Now().After(end) {
			r.t.Fatalf("never: %s; events %v, %d messages, %+v", what, r.events, len(r.messages), r.Stats())
		}
		if err := r.Wait(time.Now().Add(100*time.Millisecond), r); err != nil {
			r.t.Fatal(err)
		}
	}
}

// state waits until the last that was told of a port is this.
func (r *recorder) state(port int, up bool) {
	r.t.Helper()
	r.until("carrier", func() bool {
		for i := len(r.events) - 1; i >= 0; i-- {
			if r.events[i].port == port {
				return r.events[i].up == up
			}
		}
		return false
	})
}

// settle takes what is there already.
func (r *recorder) settle() {
	r.t.Helper()
	for range 10 {
		if err := r.Wait(time.Now().Add(20*time.Millisecond), r); err != nil {
			r.t.Fatal(err)
		}
	}
}
