package prober

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"weft/encap"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
	"weft/lab"
	"weft/liveness"
	"weft/topology"
)

// patience is for what takes milliseconds on a machine that has nothing else to
// do.
const patience = time.Minute

func newLab(t *testing.T) *lab.Lab {
	t.Helper()
	if err := lab.CanBuild(); err != nil {
		t.Skipf("builds a lab of network namespaces: %v", err)
	}
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	l, err := lab.Hold(context.Background(), lab.Config{Name: kerneltest.LabName("p"), Topology: top, Unlimited: true, SRv6: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// host is one with a Prober, and what it has delivered.
type host struct {
	*Prober
	topology.Node

	mu        sync.Mutex
	delivered *topology.Topology
}

// carriers are those that probes may take.
var carriers = []encap.Carrier{encap.CarrierIPIP, encap.CarrierSRv6}

func open1(t *testing.T, l *lab.Lab, name string, carrier encap.Carrier) *host {
	t.Helper()
	n, err := l.Config.Topology.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return openHost(t, n, func(f func() error) error { return l.Do(n.ID, f) }, Config{Interface: "p0", Topology: l.Config.Topology,
		Seed: 1 + uint64(n.ID), Carrier: carrier, Gateway: gateway(l.Config.Topology, n.ID)})
}

// openHost runs a Prober at a host, in its namespace.
func openHost(t *testing.T, n topology.Node, within func(func() error) error, c Config) *host {
	t.Helper()
	h := &host{Node: n, delivered: c.Topology}
	c.Address = n.Addr
	c.Interval, c.Multiplier = 50*time.Millisecond, 5 // a machine that does much else answers late
	c.Deliver = func(t *topology.Topology, _ *liveness.Carriage) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.delivered = t
	}
	err := within(func() (err error) {
		h.Prober, err = Open(c)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func (h *host) down() (names []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.delivered.Down() {
		names = append(names, h.delivered.LinkName(l))
	}
	for _, a := range h.delivered.Avoided() {
		via := h.delivered.PathsTo(a.Src, a.Dst).Bounce(a.Path)
		names = append(names, h.delivered.HostName(a.Dst)+" by "+h.delivered.Node(via).Name)
	}
	return names
}

func eventually(t *testing.T, what func() (string, bool)) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		is, ok := what()
		if ok {
			return
		}
		if time.Now().After(end) {
			t.Fatal(is)
		}
	}
}

func (h *host) eventuallyDown(t *testing.T, want ...string) {
	t.Helper()
	eventually(t, func() (string, bool) {
		is := h.down()
		return fmt.Sprintf("%s has %v down, want %v", h.Name, is, want), slices.Equal(is, want)
	})
}

func fail(t *testing.T, l *lab.Lab, link string, mode lab.FailureMode) {
	t.Helper()
	if _, err := l.Fail(link, mode); err != nil {
		t.Fatal(err)
	}
}

// Boomerangs come home from every bouncing switch, past a kernel that would take
// them for forged; an own link that drops everything is found, though nobody sees
// it go down, and comes back.
func TestProber_findsOwnDeadLink(t *testing.T) {
	slowtest.System(t)
	for _, c := range carriers {
		t.Run(c.String(), func(t *testing.T) { findsOwnDeadLink(t, c) })
	}
}

func findsOwnDeadLink(t *testing.T, carrier encap.Carrier) {
	l := newLab(t)
	h := open1(t, l, "h0.0.2", carrier)
	// 2 aggregation switches and 4 cores.
	eventually(t, func() (string, bool) {
		paths := h.Paths()
		for _, p := range paths {
			if p.RTT == 0 {
				return fmt.Sprintf("nothing has come home by %v: %+v", p.Via, h.Stats()), false
			}
		}
		return fmt.Sprintf("%d paths", len(paths)), len(paths) == 6
	})
	for _, link := range []string{"a0.2-c1.1", "e0.0-a0.3"} {
		fail(t, l, link, lab.FailSilentData)
		h.eventuallyDown(t, link)
		if _, err := l.Heal(); err != nil {
			t.Fatal(err)
		}
		h.eventuallyDown(t)
	}
}

// A dead link beyond the bouncing switch is found by probes that a peer sends
// back, and only because there is a connection to it; no other peer's paths are
// avoided for that.
func TestProber_findsFarDeadLink(t *testing.T) {
	slowtest.System(t)
	for _, c := range carriers {
		t.Run(c.String(), func(t *testing.T) { findsFarDeadLink(t, c) })
	}
}

func findsFarDeadLink(t *testing.T, carrier encap.Carrier) {
	l := newLab(t)
	a, b := open1(t, l, "h0.0.2", carrier), open1(t, l, "h3.1.3", carrier)
	var listener net.Listener
	var conn net.Conn
	if err := l.Do(b.ID, func() (err error) {
		listener, err = net.Listen("tcp4", netip.AddrPortFrom(b.Addr, 7000).String())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if err := l.Do(a.ID, func() (err error) {
		conn, err = net.DialTimeout("tcp4", listener.Addr().String(), patience)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	eventually(t, func() (string, bool) {
		n := 0
		for _, p := range a.Paths() {
			if p.Dst == b.Addr && p.State == liveness.Up && p.RTT > 0 {
				n++
			}
		}
		return fmt.Sprintf("%d of 4 paths to %s are known: %+v, there %+v", n, b.Name, a.Stats(), b.Stats()), n == 4
	})
	fail(t, l, "a3.2-c1.1", lab.FailSilentData)
	a.eventuallyDown(t, "h3.1.3 by c1.1")
	if _, err := l.Heal(); err != nil {
		t.Fatal(err)
	}
	a.eventuallyDown(t)
	if s := b.Stats(); s.Echoed == 0 || s.Refused > 0 {
		t.Errorf("%s has answered %d requests, refused %d", b.Name, s.Echoed, s.Refused)
	}

	// What the switches say is delivered, too.
	link, err := l.Config.Topology.LinkByName("e2.0-a2.2")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.SetTopology(l.Config.Topology.Without(link.ID)); err != nil {
		t.Fatal(err)
	}
	a.eventuallyDown(t, "e2.0-a2.2")
}
