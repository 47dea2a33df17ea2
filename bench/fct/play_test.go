package fct

import (
	"context"
	"errors"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weft/bench/sim/workload"
	"weft/bench/testbed"
	"weft/topology"
)

// session starts hosts that spray by drb, in memory.
func session(t *testing.T, rateMbit float64) *testbed.Session {
	t.Helper()
	rows, err := testbed.Select([]string{"drb"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := testbed.InMemory(testbed.Config{Topology: parse(t, "leaf-spine:leaves=2,spines=2,hosts=2"), RateMbit: rateMbit, Seed: 1}).Start(t.Context(), rows[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestPlay_everyFlowFinishes(t *testing.T) {
	s := session(t, 100)
	var flows []workload.Flow
	for i := range 40 {
		flows = append(flows, workload.Flow{Start: time.Duration(i) * 2 * time.Millisecond,
			Src: topology.NodeID(i % 4), Dst: topology.NodeID((i + 2) % 4), Bytes: 1 + int64(i)*3000})
	}
	all, broken, err := play(t.Context(), s, plan{flows: flows}, time.Minute, nil)
	if err != nil || broken != nil {
		t.Fatal(err, broken)
	}
	for i, o := range all {
		if !o.finished || o.took <= 0 || o.took > time.Minute || o.late < 0 {
			t.Errorf("flow %d of %d bytes: %+v", i, flows[i].Bytes, o)
		}
	}
}

// A flow that the link cannot carry in time is unfinished, and counts until the deadline;
// those beside it finish.
func TestPlay_theDeadlineIsToldOf(t *testing.T) {
	s := session(t, 20)
	// A busy machine gets more time, until the small flow finishes.
	for until := time.Second; ; until *= 4 {
		before := time.Now()
		all, broken, err := play(t.Context(), s, plan{flows: []workload.Flow{
			{Src: 0, Dst: 2, Bytes: 1 << 30}, // takes more than 7 minutes
			{Start: 100 * time.Millisecond, Src: 1, Dst: 3, Bytes: 1000},
		}}, until, nil)
		if err != nil || broken != nil {
			t.Fatal(err, broken)
		}
		if took := time.Since(before); took < until {
			t.Errorf("play has ended after %v, before the deadline at %v", took, until)
		}
		if o := all[0]; o.finished || o.took <= 0 || o.took > until {
			t.Errorf("the large flow: %+v", o)
		}
		if all[1].finished {
			return
		}
		if until > time.Minute {
			t.Fatalf("the small flow in %v: %+v", until, all[1])
		}
	}
}

func TestPlay_endsWithItsContext(t *testing.T) {
	s := session(t, 20)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, _, err := play(ctx, s, plan{flows: []workload.Flow{{Src: 0, Dst: 2, Bytes: 1 << 30}, {Start: time.Hour, Dst: 3, Bytes: 1}}}, 2*time.Hour, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// counting is a host that counts the goroutines there are when the first flow connects.
type counting struct {
	testbed.Endpoint
	first *sync.Once
	seen  *int
}

func (c counting) DialContext(context.Context, string, string) (net.Conn, error) {
	c.first.Do(func() { *c.seen = runtime.NumGoroutine() })
	return nil, errors.New("counted")
}

// Flows of one time begin together: when the first one does, all are there.
func TestPlay_flowsOfOneTimeBeginTogether(t *testing.T) {
	s := session(t, 100)
	seen := 0
	s.Hosts[0].Endpoint = counting{s.Hosts[0].Endpoint, new(sync.Once), &seen}
	flows := plan{flows: slices.Repeat([]workload.Flow{{Dst: 2, Bytes: 1}}, 2000)}
	if _, broken, err := play(t.Context(), s, flows, time.Minute, nil); err != nil || broken == nil {
		t.Fatal(broken, err)
	}
	if seen < len(flows.flows) {
		t.Errorf("when the first of %d flows begins there are %d goroutines", len(flows.flows), seen)
	}
}

// Flows that are to be apart begin so long after the end of the one before, whether it finished or
// not.
func TestPlay_flowsApart(t *testing.T) {
	s := session(t, 100)
	s.Hosts[0].Endpoint = liar{s.Hosts[0].Endpoint, nil} // its flow breaks
	p := plan{apart: 30 * time.Millisecond}
	for _, f := range []workload.Flow{{Src: 0, Dst: 2, Bytes: 1}, {Src: 1, Dst: 3, Bytes: 50_000}, {Src: 1, Dst: 3, Bytes: 1}} {
		p.add(f, len(p.flows)-1)
	}
	all, broken, err := play(t.Context(), s, p, time.Minute, nil)
	if err != nil || broken == nil || all[0].finished {
		t.Fatal(all, broken, err)
	}
	end := all[0].began // at the earliest
	for i, o := range all[1:] {
		if !o.finished || o.began < end+p.apart {
			t.Errorf("flow %d: %+v; the one before ended at %v", i+1, o, end)
		}
		end = o.began + o.took
	}
}

// liar is a host whose connections go to a receiver that answers wrongly, or not at all.
type liar struct {
	testbed.Endpoint
	answer []byte
}

func (l liar) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := l.Endpoint.DialContext(ctx, network, address)
	return lying{c, l.answer}, err
}

type lying struct {
	net.Conn
	answer []byte
}

func (c lying) CloseWrite() error { return c.Conn.(interface{ CloseWrite() error }).CloseWrite() }

func (c lying) Read(b []byte) (int, error) {
	if c.answer == nil {
		return 0, errors.New("torn")
	}
	return copy(b, c.answer), nil
}

func TestPlay_whatArrivesIsChecked(t *testing.T) {
	s := session(t, 100)
	honest := s.Hosts[0].Endpoint
	flow := plan{flows: []workload.Flow{{Src: 0, Dst: 2, Bytes: 77}}}
	s.Hosts[0].Endpoint = liar{honest, []byte{0, 0, 0, 0, 0, 0, 0, 76}}
	if _, _, err := play(t.Context(), s, flow, time.Minute, nil); err == nil || !strings.Contains(err.Error(), "sent 77 bytes to host 2, and 76 arrived") {
		t.Errorf("error %v", err)
	}
	s.Hosts[0].Endpoint = liar{honest, nil}
	all, broken, err := play(t.Context(), s, flow, time.Minute, nil)
	if err != nil || broken == nil || !strings.Contains(broken.Error(), "torn") {
		t.Fatal(broken, err)
	}
	if all[0].finished || all[0].took < 50*time.Second {
		t.Errorf("a flow that broke counts as %+v", all[0])
	}
}
