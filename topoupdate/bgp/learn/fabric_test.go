package learn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"weft/topology"
	"weft/topology/graph"
	"weft/topoupdate/bgp"
	"weft/topoupdate/bgp/session"
)

var own = []netip.Addr{netip.MustParseAddr("192.168.1.9"), netip.MustParseAddr("2001:db8:1::9")}

// views are a fabric of so many racks, of whose links to spine s2 that of rack cut is missing.
func views(t *testing.T, racks, cut int) bgp.Views {
	t.Helper()
	var s graph.Spec
	s.Nodes = append(s.Nodes, graph.Node{Name: "this-host", Addresses: own})
	s.Links = append(s.Links, graph.Link{Ends: [2]string{"this-host", "e1"}})
	for i := 1; i <= 2; i++ {
		s.Nodes = append(s.Nodes, graph.Node{Name: fmt.Sprint("s", i), Tier: 2, Addresses: []netip.Addr{
			netip.AddrFrom4([4]byte{172, 16, 0, byte(i)}), netip.MustParseAddr(fmt.Sprintf("2001:db8:ffff::%d", i))}})
	}
	for e := 1; e <= racks; e++ {
		name := fmt.Sprint("e", e)
		s.Nodes = append(s.Nodes, graph.Node{Name: name, Tier: 1, Prefixes: []netip.Prefix{
			netip.MustParsePrefix(fmt.Sprintf("192.168.%d.0/24", e)), netip.MustParsePrefix(fmt.Sprintf("2001:db8:%d::/64", e))}})
		for i := 1; i <= 2; i++ {
			if e != cut || i != 2 {
				s.Links = append(s.Links, graph.Link{Ends: [2]string{name, fmt.Sprint("s", i)}})
			}
		}
	}
	g, err := graph.New(s)
	if err != nil {
		t.Fatal(err)
	}
	v, err := bgp.ViewsOf(g, own)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// told is a source that says what a test says.
type told struct {
	mu     sync.Mutex
	v      bgp.Views
	err    error
	wake   chan struct{}
	closed bool
}

func (s *told) say(v bgp.Views, err error) {
	s.mu.Lock()
	s.v, s.err = v, err
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *told) Views() (bgp.Views, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.v, s.err
}
func (s *told) Changed() <-chan struct{} { return s.wake }
func (s *told) Close() error             { s.closed = true; return nil }

// host notes what it goes by.
type host struct {
	mu     sync.Mutex
	t, t6  *topology.Topology
	refuse error
}

func (h *host) SetTopology(t *topology.Topology) error  { return h.set(&h.t, t) }
func (h *host) SetTopology6(t *topology.Topology) error { return h.set(&h.t6, t) }

func (h *host) set(at **topology.Topology, t *topology.Topology) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refuse == nil {
		*at = t
	}
	return h.refuse
}

func (h *host) downs() (n, n6 int) { return len(h.t.Down()), len(h.t6.Down()) }

// What is withdrawn is out of use at once, what is new after a second, and silence changes
// nothing.
func TestFollower(t *testing.T) {
	var log bytes.Buffer
	h := &host{}
	w := follower{host: h, log: slog.New(slog.NewTextHandler(&log, nil)), base: views(t, 3, 0)}
	now := time.Unix(1000, 0)
	hear := func(what string, v bgp.Views, err error, n, n6 int) {
		t.Helper()
		w.hear(now, v, err)
		w.grow(now)
		if got, got6 := h.downs(); got != n || got6 != n6 {
			t.Errorf("%s: %d links are down, of IPv6 %d; want %d, %d", what, got, got6, n, n6)
		}
	}
	hear("whole", views(t, 3, 0), nil, 0, 0)
	hear("a link is withdrawn", views(t, 3, 2), nil, 1, 1)
	hear("the session has ended", bgp.Views{}, ErrUnlearned, 1, 1)
	hear("and still", bgp.Views{}, ErrUnlearned, 1, 1)
	if n := strings.Count(log.String(), "tell nothing"); n != 1 {
		t.Errorf("it is said %d times", n)
	}
	hear("IPv6 alone is back", bgp.Views{Fabric: views(t, 3, 2).Fabric, Fabric6: views(t, 3, 0).Fabric6}, nil, 1, 0)
	hear("a rack is new", views(t, 4, 0), nil, 0, 0)
	if h.t.String() != w.base.Fabric.String() {
		t.Error("growth is not held back")
	}
	now = w.next(now)
	hear("and due", views(t, 4, 0), nil, 0, 0)
	if grown := views(t, 4, 0); h.t.String() != grown.Fabric.String() || h.t6.String() != grown.Fabric6.String() || !w.next(now).IsZero() {
		t.Error("it does not go by the fabric that has grown")
	}
	// A family that goes is kept, and probed.
	six := h.t6
	hear("no IPv6 any more", bgp.Views{Fabric: views(t, 4, 0).Fabric}, nil, 0, 0)
	now = now.Add(2 * bgp.GrowAfter)
	hear("and still none", bgp.Views{Fabric: views(t, 4, 0).Fabric}, nil, 0, 0)
	if h.t6.String() != six.String() {
		t.Error("IPv6 is another fabric")
	}
	// A host that does not take the news is told again.
	h.refuse = errors.New("no room")
	hear("refused", views(t, 4, 2), nil, 0, 0)
	if at := w.next(now); at.Sub(now) != tryAgain {
		t.Errorf("it is told again at %v", at)
	}
	h.refuse = nil
	hear("taken", views(t, 4, 2), nil, 1, 1)
}

// A Host that has begun without IPv6 gets none.
func TestFollower_withoutIPv6(t *testing.T) {
	v := views(t, 3, 0)
	h := &host{}
	w := follower{host: h, log: slog.New(slog.DiscardHandler), base: bgp.Views{Fabric: v.Fabric}}
	w.hear(time.Unix(1, 0), v, nil)
	if h.t == nil || h.t6 != nil || !w.next(time.Unix(1, 0)).IsZero() {
		t.Errorf("%+v", h)
	}
}

func TestFabric(t *testing.T) {
	s := &told{wake: make(chan struct{}, 1), err: fmt.Errorf("%w: no session with 192.168.1.1", ErrUnlearned)}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := open(ctx, Config{Addresses: own}, s); err == nil || !strings.Contains(err.Error(), "no session with 192.168.1.1") || !s.closed {
		t.Errorf("nobody is there: %v", err)
	}
	s.closed = false
	go func() {
		time.Sleep(10 * time.Millisecond)
		s.say(views(t, 3, 0), nil)
	}()
	f, err := open(t.Context(), Config{Addresses: own}, s)
	if err != nil {
		t.Fatal(err)
	}
	if f.Topology() == nil || f.Topology6() == nil {
		t.Fatal("no topology")
	}
	h := &host{t: f.Topology(), t6: f.Topology6()}
	if err := f.Follow(h); err != nil {
		t.Fatal(err)
	}
	if err := f.Follow(h); err == nil {
		t.Error("a second Host is taken")
	}
	s.say(views(t, 3, 2), nil)
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		h.mu.Lock()
		n, n6 := h.downs()
		h.mu.Unlock()
		if n == 1 && n6 == 1 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d links are down, of IPv6 %d", n, n6)
		}
	}
	if err := f.Close(); err != nil || !s.closed {
		t.Errorf("%v, closed %t", err, s.closed)
	}
	if f.Follow(h) == nil {
		t.Error("Follow after Close")
	}
}

func TestOpen_refuses(t *testing.T) {
	four, six := own[0], own[1]
	good := []session.Neighbor{{Addr: netip.MustParseAddr("127.0.0.9"), AS: 65101}}
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{AS: 1, Neighbors: good}, "Config.Addresses"},
		{Config{AS: 1, Neighbors: good, Addresses: []netip.Addr{six}}, "give one IPv4 address"},
		{Config{AS: 1, Neighbors: good, Addresses: []netip.Addr{four, four}}, "give one IPv4 address"},
		{Config{AS: 1, Neighbors: good, Addresses: []netip.Addr{four, netip.MustParseAddr("fe80::1")}}, "fe80::1"},
		{Config{Neighbors: good, Addresses: own}, "AS is missing"},
		{Config{AS: 1, Addresses: own}, "Neighbors is empty"},
	} {
		if f, err := Open(t.Context(), c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
			if f != nil {
				f.Close()
			}
		}
	}
}
