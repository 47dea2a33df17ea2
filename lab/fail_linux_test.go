package lab

import (
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"weft/fabric"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
	"weft/topology"
)

func mustFail(t testing.TB, l *Lab, target string, mode FailureMode) time.Time {
	t.Helper()
	at, err := l.Fail(target, mode)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func mustHeal(t testing.TB, l *Lab, targets ...string) {
	t.Helper()
	if _, err := l.Heal(targets...); err != nil {
		t.Fatal(err)
	}
}

// portTo returns the status of a node's port to another node.
func portTo(t testing.TB, l *Lab, node, peer string) PortStatus {
	t.Helper()
	for _, n := range l.Status() {
		if n.Node != node {
			continue
		}
		if i := slices.IndexFunc(n.Ports, func(p PortStatus) bool { return p.Peer == peer }); i >= 0 {
			return n.Ports[i]
		}
	}
	t.Fatalf("%s has no port to %s", node, peer)
	return PortStatus{}
}

// wantAsBuilt checks that every node is as its plan and its builder made it.
func wantAsBuilt(t *testing.T, l *Lab) {
	t.Helper()
	for n := range l.Config.nodes() {
		plan, err := l.Config.plan(n.ID)
		if err != nil {
			t.Fatal(err)
		}
		err = l.Do(n.ID, func() error {
			r, err := fabric.Apply(plan)
			if err == nil && r.Changed != 0 {
				t.Errorf("%s: %d settings were not as planned", n.Name, r.Changed)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		err = l.Do(n.ID, func() error {
			neighbours, err := netlink.NeighList(0, netlink.FAMILY_V4)
			permanent := 0
			for _, have := range neighbours {
				if have.State == netlink.NUD_PERMANENT {
					permanent++
				}
			}
			if want := len(plan.Ports); permanent != want {
				t.Errorf("%s knows %d neighbours, want %d", n.Name, permanent, want)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	for _, n := range l.Status() {
		for _, p := range n.Ports {
			if p.Failure != "" {
				t.Errorf("%s %s: still %s", n.Node, p.Port, p.Failure)
			}
		}
	}
}

func TestFail_loudIsSeenAndHeals(t *testing.T) {
	l := upLab(t, Config{Topology: kerneltest.Topology(t, "fat-tree:k=4")})
	before := time.Now()
	at := mustFail(t, l, "a0.2-e0.0", FailLoud) // as people write it, not as it is called
	if at.Before(before) || at.After(time.Now()) {
		t.Errorf("failed at %v, not between %v and now", at, before)
	}
	kerneltest.Within(t, kerneltest.Patience, "both ends lose their carrier", func() bool {
		return !portTo(t, l, "e0.0", "a0.2").Up && !portTo(t, l, "a0.2", "e0.0").Up
	})
	if p := portTo(t, l, "a0.2", "e0.0"); p.Failure != FailLoud {
		t.Errorf("upper end %+v", p)
	}
	if p := portTo(t, l, "a0.2", "e0.1"); p.Failure != "" || !p.Up {
		t.Errorf("another port: %+v", p)
	}
	// Another process sees it and heals it.
	other, err := Open(l.Config.Name)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if f, err := other.Failures(); err != nil || len(f) != 1 || f["e0.0-a0.2"] != FailLoud {
		t.Errorf("failures %v, %v", f, err)
	}
	mustHeal(t, other, "e0.0-a0.2")
	kerneltest.Within(t, kerneltest.Patience, "the carrier is back", func() bool { return portTo(t, l, "e0.0", "a0.2").Up })
	wantAsBuilt(t, l)
}

// Links of a failed node stay down when one of them is healed by itself, and
// the other way round.
func TestFail_nodesAndLinksOverlap(t *testing.T) {
	slowtest.System(t)
	l := upLab(t, Config{Topology: kerneltest.Topology(t, "fat-tree:k=4")})
	up := func() bool { return portTo(t, l, "a0.2", "c1.1").Up }
	kerneltest.Within(t, kerneltest.Patience, "the lab is up", up)
	mustFail(t, l, "a0.2-3.0", FailLoud)
	mustFail(t, l, "3.0", FailLoud)
	kerneltest.Within(t, kerneltest.Patience, "the carrier is gone", func() bool { return !up() })
	mustHeal(t, l, "a0.2-c1.1")
	for range 30 { // the kernel may take a second to find a carrier
		if time.Sleep(40 * time.Millisecond); up() {
			t.Fatal("a link of a failed switch is up")
		}
	}
	mustFail(t, l, "a0.2-c1.1", FailSilent)
	if p := portTo(t, l, "a0.2", "c1.1"); p.Failure != FailLoud {
		t.Errorf("silent beside loud: %+v", p)
	}
	mustHeal(t, l, "c1.1")
	kerneltest.Within(t, kerneltest.Patience, "the carrier is back", up)
	if p := portTo(t, l, "a0.2", "c1.1"); p.Failure != FailSilent {
		t.Errorf("silent without the loud: %+v", p)
	}
	mustHeal(t, l)
	mustHeal(t, l) // of nothing
	wantAsBuilt(t, l)
}

func TestFail_bad(t *testing.T) {
	l := upLab(t, Config{Topology: kerneltest.Topology(t, "fat-tree:k=2")})
	for target, want := range map[string]string{"e9.0": "e9.0", "e0.0-e1.0": "not wired to each other", "e0.0-": "node \"\""} {
		if _, err := l.Fail(target, FailLoud); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("fail %s: error %v", target, err)
		}
	}
	if _, err := l.Fail("e0.0", "halfway"); err == nil || !strings.Contains(err.Error(), "must be loud, silent or silent-data") {
		t.Errorf("mode: %v", err)
	}
	if _, err := l.Heal("e0.0"); err == nil || !strings.Contains(err.Error(), "e0.0 has not failed; nothing has") {
		t.Errorf("heal what is well: %v", err)
	}
	mustFail(t, l, "e0.0", FailLoud)
	mustFail(t, l, "e0.0", FailLoud) // twice is once
	if _, err := l.Fail("e0.0", FailSilent); err == nil || !strings.Contains(err.Error(), "failed already (loud)") {
		t.Errorf("another way: %v", err)
	}
}

// A silent failure drops packets of both directions under links that are up; a
// failure of data alone lets the switches' messages pass.
func TestFail_silent(t *testing.T) {
	l := upLab(t, Config{Topology: kerneltest.Topology(t, "fat-tree:k=2")})
	hosts := kerneltest.Hosts(l.Config.Topology)
	data := listenUDP(t, l, hosts...)
	var control []*net.UDPConn
	for _, h := range hosts {
		err := l.Do(h.ID, func() error {
			s, err := net.ListenUDP("udp4", &net.UDPAddr{IP: h.Addr.AsSlice(), Port: controlPort})
			if err == nil {
				t.Cleanup(func() { s.Close() })
			}
			control = append(control, s)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		mode          FailureMode
		target        string
		data, control bool
	}{
		{FailSilent, "a0.1-c1.1", false, false},
		{FailSilentData, "a0.1-c1.1", false, true},
		{FailSilent, "3.0", false, false},
		{FailSilentData, "h0.0.2", false, true},
		{"", "", true, true},
	} {
		if c.mode != "" {
			mustFail(t, l, c.target, c.mode)
		}
		for i, from := range []int{0, 1} {
			to := 1 - from
			if got := arrives(t, data[from], data[to]); got != c.data {
				t.Errorf("%s %s, direction %d: data arrives = %v", c.mode, c.target, i, got)
			}
			if got := arrives(t, control[from], control[to]); got != c.control {
				t.Errorf("%s %s, direction %d: control arrives = %v", c.mode, c.target, i, got)
			}
		}
		for _, n := range l.Status() {
			for _, p := range n.Ports {
				if !p.Up {
					t.Errorf("%s %s: %s %s has no carrier", c.mode, c.target, n.Node, p.Port)
				}
			}
		}
		mustHeal(t, l)
	}
	wantAsBuilt(t, l)
}

// arrives sends until a packet comes through, or none has for a while.
func arrives(t *testing.T, from, to *net.UDPConn) bool {
	t.Helper()
	b := make([]byte, 8)
	for range 10 {
		if _, err := from.WriteTo([]byte("x"), to.LocalAddr()); err != nil {
			return false
		}
		to.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		if _, _, err := to.ReadFrom(b); err == nil {
			return true
		}
	}
	return false
}

// Several fail and heal at a time, from two processes' views of the lab; in
// the end all is as it was built.
func TestFail_concurrently(t *testing.T) {
	slowtest.System(t)
	l := upLab(t, Config{Topology: kerneltest.Topology(t, "fat-tree:k=4")})
	const seed = 5
	t.Logf("seed %d", seed)
	var wg sync.WaitGroup
	for i := range 3 {
		other, err := Open(l.Config.Name)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			for range 15 {
				link := l.Config.Topology.LinkName(topology.LinkID(rng.IntN(l.Config.Topology.NumLinks())))
				// Whether it succeeds depends on the others.
				other.Fail(link, failureModes[1+rng.IntN(3)])
				other.Heal(link)
			}
		})
	}
	wg.Wait()
	mustHeal(t, l)
	kerneltest.Within(t, kerneltest.Patience, "all links are up", func() bool {
		for _, n := range l.Status() {
			for _, p := range n.Ports {
				if !p.Up {
					return false
				}
			}
		}
		return true
	})
	wantAsBuilt(t, l)
}

func BenchmarkFail_linkAndHeal(b *testing.B) {
	l := upLab(b, Config{Topology: kerneltest.Topology(b, "fat-tree:k=4")})
	for _, mode := range failureModes[1:] {
		b.Run(string(mode), func(b *testing.B) {
			for b.Loop() {
				mustFail(b, l, "a0.2-3.0", mode)
				mustHeal(b, l)
			}
		})
	}
}
