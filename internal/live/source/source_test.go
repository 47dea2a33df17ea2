package source

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"weft/internal/kernel"
	"weft/internal/live"
)

func TestParsePorts(t *testing.T) {
	const table = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       1       2    3    4    5     6          7         8      9      10   11   12   13    14      15         16
 p0: 100 20 0 1 0 0 0 0 300 40 0 2 0 0 0 0
`
	got, err := parsePorts([]byte(table))
	want := map[string]PortCount{
		"lo": {Received: 1, ReceivedPackets: 2, Forgotten: 4, Sent: 9, SentPackets: 10, SentDrops: 12},
		"p0": {Received: 100, ReceivedPackets: 20, Forgotten: 1, Sent: 300, SentPackets: 40, SentDrops: 2},
	}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := parsePorts([]byte(" p0: x 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n")); err == nil {
		t.Error("a word was taken for a number")
	}
}

// status is what a weft host says: two ways up, one link down, one suspected.
func status(topology string, sent uint64) string {
	b, _ := json.Marshal(map[string]any{
		"mode": "offload", "policy": "auto", "encapsulation": "ipip", "topology": topology, "address": "10.0.0.2", "uplink": "p0", "process": 7,
		"reach": map[string]any{"racks": 7, "in_use": []any{map[string]any{"rack": "e3.1", "prefix": "10.3.1.0/24", "paths": 4, "up": 3}}},
		"failures": map[string]any{"down": []string{"a0.3-c2.1"}, "down_ends": [][2]string{{"a0.3", "c2.1"}},
			"paths":  []any{map[string]any{"to": "10.0.0.2", "via": "10.4.1.1", "bounce": "c1.1", "state": "up", "rtt_ms": 0.2, "lately": map[string]any{"sent": 100, "lost": 3}}},
			"blamed": []any{map[string]any{"places": []string{"a0.2-c1.1", "c1.1"}, "kinds": []string{"link", "switch"}, "loss": 0.03, "lost": 60}}},
		"offload": map[string]any{"bounces": []any{map[string]any{"address": "10.4.1.1", "packets": sent / 1000, "bytes": sent}, map[string]any{"address": "10.4.1.2", "packets": 3, "bytes": 3000}}},
	})
	return string(b)
}

// hostAt returns the frames of a host with two statuses.
func hostAt(t *testing.T, topology string) (*live.Fabric, *live.Frame, *Host) {
	t.Helper()
	n := uint64(0)
	h := NewHost(func(context.Context) ([]byte, error) { n += 1e6; return []byte(status(topology, n)), nil },
		func() ([]kernel.Connection, error) {
			return []kernel.Connection{{Local: netip.MustParseAddrPort("10.0.0.2:4000"), Remote: netip.MustParseAddrPort("10.3.1.3:80"), State: "established", Sent: n}}, nil
		},
		func() (map[string]PortCount, error) {
			return map[string]PortCount{"p0": {Sent: n, Received: 2 * n}}, nil
		})
	var m live.Meter
	var fab *live.Fabric
	var frame *live.Frame
	for range 2 {
		var err error
		if fab, err = h.Fabric(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := fab.Check(); err != nil {
			t.Fatal(err)
		}
		s, err := h.Sample(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		frame = m.Next(fab, s)
	}
	return fab, frame, h
}

func TestHost_computed(t *testing.T) {
	fab, frame, h := hostAt(t, "fat-tree:k=4")
	if fab.Version != 1 || len(fab.Nodes) != 36 || len(fab.Links) != 48 || fab.Kind != live.KindHost {
		t.Fatalf("version %d, %d nodes, %d links", fab.Version, len(fab.Nodes), len(fab.Links))
	}
	link := func(name string) live.LinkFrame { return frame.Links[fab.FindLink(name)] }
	if l := link("a0.3-c2.1"); l.State != live.Broken {
		t.Errorf("a link that is down: %+v", l)
	}
	if l := link("a0.2-c1.1"); l.State != live.Suspected || l.Up.Rate == 0 || l.Down.Rate != 0 {
		t.Errorf("a link that is blamed and carries: %+v", l)
	}
	if own, up := link("h0.0.2-e0.0"), link("e0.0-a0.2"); own.Up.Rate == 0 || own.Down.Rate <= own.Up.Rate || up.Up.Rate == 0 {
		t.Errorf("own link %+v, the next %+v", own, up)
	}
	if w := frame.Ways; len(w) != 2 || w[0].Bounce != "10.4.1.2" || w[1].Bounce != "c1.1" || w[1].Share != 1 || w[1].Loss != 0.03 {
		t.Errorf("ways %+v", w)
	}
	if c := frame.Conns; len(c) != 1 || c[0].From != "h0.0.2" || c[0].To != "h3.1.3" || c[0].Sends == 0 {
		t.Errorf("connections %+v", c)
	}
	if p := h.Paths(fab.Find("h0.0.2"), fab.Find("h3.1.3")); len(p) != 4 || len(p[0].Links) != 6 {
		t.Errorf("paths %v", p)
	}
}

// Of a fabric that is data, the picture is a star of what the host uses.
func TestHost_star(t *testing.T) {
	fab, frame, h := hostAt(t, "graph:123")
	var names []string
	for _, n := range fab.Nodes {
		names = append(names, n.Name)
	}
	if !slices.Equal(names, []string{"10.0.0.2", "e3.1", "c1.1", "10.4.1.2"}) && !slices.Equal(names, []string{"10.0.0.2", "e3.1", "10.4.1.2", "c1.1"}) {
		t.Fatalf("nodes %q", names)
	}
	if l := frame.Links[fab.FindLink("10.0.0.2-c1.1")]; l.Up.Rate == 0 {
		t.Errorf("what was sent by c1.1: %+v", l)
	}
	if p := h.Paths(0, fab.Find("e3.1")); len(p) != 2 {
		t.Errorf("paths %v", p)
	}
}

func TestHost_errors(t *testing.T) {
	h := NewHost(func(context.Context) ([]byte, error) { return nil, errors.New("nobody answers") }, nil, nil)
	if _, err := h.Fabric(t.Context()); err == nil {
		t.Error("no error")
	}
	if _, err := h.Sample(t.Context()); err == nil {
		t.Error("no error")
	}
}

func TestBothEnds(t *testing.T) {
	got := bothEnds([]live.ConnSample{
		{From: "b", Local: "2", Remote: "1", Sent: 5, OutOfOrder: 9},
		{From: "a", Local: "1", Remote: "2", Sent: 100, OutOfOrder: 1},
		{From: "c", Local: "3", Remote: "2", Sent: 7},
	})
	if len(got) != 2 || got[0].From != "a" || got[0].OutOfOrder != 10 || got[1].From != "c" {
		t.Errorf("%+v", got)
	}
}

// A socket's path leads to a host of another network namespace, too. Its counters are told, and
// not those of this one's devices and connections.
func TestHost_elsewhere(t *testing.T) {
	n := uint64(0)
	h := LocalHost(func(context.Context) ([]byte, error) { n += 1e6; return []byte(status("fat-tree:k=4", n)), nil })
	h.conns = func() ([]kernel.Connection, error) { t.Error("connections are asked for"); return nil, nil }
	h.ports = func() (map[string]PortCount, error) { t.Error("devices are asked for"); return nil, nil }
	h.here = func(a netip.Addr) bool { return a != netip.MustParseAddr("10.0.0.2") }
	if _, err := h.Fabric(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, err := h.Sample(t.Context())
	if err != nil || !strings.Contains(s.Trouble, "10.0.0.2") || !strings.Contains(s.Trouble, "network namespace") || len(s.Ways) == 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if !isHere(netip.MustParseAddr("127.0.0.1")) || isHere(netip.MustParseAddr("192.0.2.1")) {
		t.Error("whose addresses are those of this namespace?")
	}
}

// A daemon that ends and begins anew counts from 0. Until it answers nothing is told, and then no
// rate that is not so.
func TestHost_restarts(t *testing.T) {
	sent, down := uint64(5e9), false
	h := NewHost(func(context.Context) ([]byte, error) {
		if down {
			return nil, errors.New("nobody answers")
		}
		sent += 1e6
		return []byte(status("fat-tree:k=4", sent)), nil
	}, nil, nil)
	var m live.Meter
	look := func() (f *live.Frame, err error) {
		fab, err := h.Fabric(t.Context())
		if err != nil {
			return nil, err
		}
		s, err := h.Sample(t.Context())
		if err != nil {
			return nil, err
		}
		return m.Next(fab, s), nil
	}
	rate := func(f *live.Frame) float64 {
		return f.Ways[slices.IndexFunc(f.Ways, func(w live.Way) bool { return w.Bounce == "c1.1" })].Rate
	}
	for i := range 6 {
		down = i == 3
		if i == 4 {
			sent = 0
		}
		f, err := look()
		if (err != nil) != down {
			t.Fatalf("look %d: %v", i, err)
		}
		if err == nil && (rate(f) > 0) != (i != 0 && i != 4) {
			t.Errorf("look %d: %v bit/s", i, rate(f))
		}
	}
}
