package daemon

import (
	"errors"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"weft/internal/probe"
	"weft/liveness"
)

// fakeProber knows of paths. It tells of them when it is let.
type fakeProber struct {
	self  netip.Addr
	paths []liveness.PathHealth
	let   chan struct{} // closed: at once
	asked chan struct{} // gets one for each time that somebody asks for paths
	times atomic.Int32  // that somebody has
}

func newFakeProber(self netip.Addr, paths ...liveness.PathHealth) *fakeProber {
	return &fakeProber{self: self, paths: paths, let: make(chan struct{}), asked: make(chan struct{}, 100)}
}

func (p *fakeProber) Self() netip.Addr { return p.self }
func (p *fakeProber) Paths() []liveness.PathHealth {
	p.times.Add(1)
	p.asked <- struct{}{}
	<-p.let
	return slices.Clone(p.paths)
}
func (p *fakeProber) Suspects() []liveness.Suspect { return nil }
func (p *fakeProber) Stats() probe.Stats           { return probe.Stats{} }

// The owner goes on while the state of paths is looked at for a status or a scrape: it must
// show every 200 ms that it lives. Those who ask meanwhile, and for some time after that, are
// told the same.
func TestSnapshot_ownerGoesOn(t *testing.T) {
	w := newWorld(t, 1)
	w.d.views.keep = time.Hour
	p := newFakeProber(w.d.place.address, liveness.PathHealth{Dst: w.d.place.address, State: liveness.Up, RTT: time.Millisecond})
	w.followers[0].probes.used = p
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(w.d.collector())
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if i%2 == 0 {
				if _, err := reg.Gather(); err != nil {
					t.Error(err)
				}
				return
			}
			if s := w.d.snapshot(); len(s.Failures.Paths) != 1 || s.Failures.Paths[0].RTT != 1 {
				t.Errorf("%+v", s.Failures)
			}
		})
	}
	<-p.asked
	went := make(chan struct{})
	go func() {
		w.d.event()()
		close(went)
	}()
	select {
	case <-went:
	case <-time.After(10 * time.Second):
		t.Error("the owner waits for those who ask")
	}
	close(p.let)
	all.Wait()
	<-went
	if n := p.times.Load(); n != 1 {
		t.Errorf("paths were asked for %d times, want once", n)
	}
	// What packets go by has changed: the view does not hold.
	w.d.topology = w.d.topology.Without(0)
	if s := w.d.snapshot(); len(s.Failures.Down) != 1 || p.times.Load() != 2 {
		t.Errorf("down %v, asked %d times", s.Failures.Down, p.times.Load())
	}
}

// A view is forgotten after some time.
func TestPathViews_forget(t *testing.T) {
	w := newWorld(t, 1)
	w.d.views.keep = time.Millisecond
	p := newFakeProber(w.d.place.address)
	close(p.let)
	w.followers[0].probes.used = p
	for end := time.Now().Add(10 * time.Second); p.times.Load() < 3; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("asked %d times", p.times.Load())
		}
		w.d.snapshot()
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		w.d.views.mu.Lock()
		left := w.d.views.last
		w.d.views.mu.Unlock()
		if left == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("a view takes memory though nobody asks")
		}
	}
}

// asker is a way by which others ask.
type asker struct{ close func() error }

func (a asker) Close() error { return a.close() }

// When others are let go, the kernel has everything back, and who still asks is not waited
// for by them.
func TestStop_kernelFirst(t *testing.T) {
	w := newWorld(t, 1)
	closed, broken := 0, errors.New("broken")
	let := asker{func() error {
		closed++
		if w.plan != nil || w.program != nil || w.locked {
			t.Errorf("not given back yet: plan %v, program %v, locked %v", w.plan != nil, w.program != nil, w.locked)
		}
		if !w.d.mu.TryLock() {
			t.Error("who asks waits for the owner, who waits for them")
			return nil
		}
		w.d.mu.Unlock()
		w.d.snapshot() // who was about to ask
		return broken
	}}
	w.d.status, w.d.metrics = let, let
	if err := w.d.stop(); !errors.Is(err, broken) || closed != 2 {
		t.Errorf("%v, %d closed", err, closed)
	}
	if s := w.d.snapshot(); s.State != StateAway {
		t.Errorf("state %q", s.State)
	}
}
