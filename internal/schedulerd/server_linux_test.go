package schedulerd

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"weft/hedera"
	"weft/hedera/wire"
	"weft/internal/kernel/kerneltest"
	"weft/topology"
)

// slow is a fabric on which a round does not end before it is let go.
type slow struct {
	hedera.Fabric
	entered, goOn chan struct{}
	once          *sync.Once
}

func (s slow) AppendRoute(list []hedera.Use, src, dst topology.NodeID, path int) []hedera.Use {
	s.once.Do(func() { close(s.entered) })
	<-s.goOn
	return s.Fabric.AppendRoute(list, src, dst, path)
}

func (s slow) Fork() hedera.Fabric { return s }

// newTestServer returns a server that leads, with the rule first-fit.
func newTestServer(t *testing.T, wrap func(hedera.Fabric) hedera.Fabric) (*server, *topology.Topology) {
	t.Helper()
	f, err := parse(fmt.Appendf(nil, "topology: %s\nlisten: %v\nrule: first-fit\n%s", testFabric, freePort(t), testKey), "s.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f.fabric = wrap(f.fabric)
	s, err := newServer(f, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(s.receive)
	t.Cleanup(func() { s.conn.Close(); all.Wait() })
	loop, err := hedera.NewLoop(f.loop(1))
	if err != nil {
		t.Fatal(err)
	}
	s.lead(loop, 1)
	top, err := topology.Parse(testFabric)
	if err != nil {
		t.Fatal(err)
	}
	return s, top
}

// Messages are received, and the status answers, while a round is computed.
func TestServer_receivesDuringARound(t *testing.T) {
	wait := slow{entered: make(chan struct{}), goOn: make(chan struct{}), once: new(sync.Once)}
	s, top := newTestServer(t, func(f hedera.Fabric) hedera.Fabric { wait.Fabric = f; return wait })
	h := newHost(t, top, 0, s.file.listen)
	report := func() { h.client.Send(wire.Report{Flows: []wire.Flow{{Tuple: tupleOf(top, 0, 8), Rate: 900e6}}}) }
	within(t, "a report is taken", func() bool {
		report()
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.loop.Flows() == 1
	})
	done := make(chan struct{})
	go func() { defer close(done); s.round() }()
	<-wait.entered
	received := make(chan struct{})
	go func() {
		defer close(received)
		for before := s.status().Flows; s.status().Flows < before+3; time.Sleep(time.Millisecond) {
			report()
		}
	}()
	select {
	case <-received:
	case <-time.After(kerneltest.Patience):
		t.Error("nothing is received while a round is computed")
	}
	close(wait.goOn)
	<-done
	<-received
	if n := s.status().Placed; n != 1 {
		t.Errorf("%d flows are placed, want 1", n)
	}
}

// A link fails: the switches say so, and the next round withdraws the placements over it and
// places the flow elsewhere. A round under way does not bring it back.
func TestServer_placementsOntoAPathThatDiedAreWithdrawn(t *testing.T) {
	s, top := newTestServer(t, func(f hedera.Fabric) hedera.Fabric { return f })
	h := newHost(t, top, 0, s.file.listen)
	within(t, "a report is taken", func() bool {
		h.client.Send(wire.Report{Flows: []wire.Flow{{Tuple: tupleOf(top, 0, 8), Rate: 900e6}}})
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.loop.Flows() == 1
	})
	first, _, _ := s.round()
	if len(first) != 1 {
		t.Fatalf("placed %v", first)
	}
	dead := top.Paths(0, 8).Path(first[0].Path).Links[1]
	work := s.loop.Begin(s.now())
	work.Compute()
	if err := s.heard(top.Without(dead)); err != nil {
		t.Fatal(err)
	}
	if r := s.loop.Finish(work); len(r.Placed) > 0 || len(r.Ended) != 1 || r.Ended[0] != first[0] {
		t.Errorf("a round that began before: %+v, want %v withdrawn", r, first)
	}
	now, changed, _ := s.round()
	if len(now) != 1 || len(changed) != 1 || !s.fabric().Live(0, 8, now[0].Path) || now[0].Path == first[0].Path {
		t.Errorf("placed %v, want another path than %v", now, first)
	}
	// The next term knows of it, too.
	s.lead(nil, 0)
	loop, err := hedera.NewLoop(s.file.loop(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := loop.Adopt(first[0], 0); err != hedera.RefusedDead {
		t.Errorf("the next leader takes a placement on a dead path: %v", err)
	}
	other, err := topology.Parse("fat-tree:k=6")
	if err != nil {
		t.Fatal(err)
	}
	s.lead(loop, 2)
	if err := s.heard(other); err == nil {
		t.Error("another fabric is taken")
	}
}
