package drill

import (
	"math"
	"testing"
	"time"

	"weft/bench/sim"
	"weft/bench/sim/workload"
	"weft/topology"
)

// view is queues in bytes, by port.
type view []int

func (v view) QueueBytes(port int) int         { return v[port] }
func (v view) SentBytes(int) int64             { return 0 }
func (v view) Delivered(topology.NodeID) int64 { return 0 }

func TestSpreads_areStandardDeviations(t *testing.T) {
	top := parse(t, "leaf-spine:leaves=2,spines=2,hosts=1") // links: 2 of hosts, then leaf 0's 2, leaf 1's 2
	v := make(view, 2*top.NumLinks())
	v[4], v[6] = 1500, 3000 // up from leaf 0: nothing and a frame, besides those on the wire
	v[9], v[11] = 5999, 0   // down to leaf 1: 3 and nothing
	s := newSpreads(top)
	s.sample(v)
	if s.meanUp() != .25 || s.meanDown() != .75 {
		t.Errorf("up %v, down %v; want 0.25 and 0.75", s.meanUp(), s.meanDown())
	}
	s.sample(make(view, len(v)))
	if s.meanUp() != .125 || s.meanDown() != .375 {
		t.Errorf("up %v, down %v after a sample of empty queues; want 0.125 and 0.375", s.meanUp(), s.meanDown())
	}
}

func TestFlows_countWhatTheyShould(t *testing.T) {
	var f flows
	for _, dups := range []uint32{0, 1, 3, 4} {
		f.ended(sim.FlowEnd{FCT: time.Duration(dups+1) * time.Microsecond, DupAcks: dups})
	}
	if f.dupPercent() != 75 || f.manyDupPercent() != 25 || f.mean() != 3 || f.percentile(50) != 2 {
		t.Errorf("%v %% with duplicate ACKs, %v %% with many, mean %v, median %v", f.dupPercent(), f.manyDupPercent(), f.mean(), f.percentile(50))
	}
	if none := (flows{us: make([]float64, 200)}); oneAtLeast(&f) != 75 || oneAtLeast(&none) != .5 {
		t.Errorf("%v %% of flows with one at least, of none %v", oneAtLeast(&f), oneAtLeast(&none))
	}
	f.result = new(sim.Result)
	f.result.OutOfOrder[0], f.result.OutOfOrder[1], f.result.OutOfOrder[63] = 90, 7, 3
	if late(&f) != 10 {
		t.Errorf("%v %% late", late(&f))
	}
}

func TestWholeSegments(t *testing.T) {
	for bytes, want := range map[int64]int64{1: 1, 1460: 1460, 1461: 2920, 100_000: 100_740} {
		f, ok := wholeSegments{once{bytes}}.Next()
		if !ok || f.Bytes != want {
			t.Errorf("%d bytes become %d, want %d", bytes, f.Bytes, want)
		}
	}
}

type once struct{ bytes int64 }

func (o once) Next() (workload.Flow, bool)                          { return workload.Flow{Bytes: o.bytes}, true }
func (once) Done(workload.Flow, time.Duration, func(workload.Flow)) {}

func TestMixed_tellsMiceFromElephants(t *testing.T) {
	var m mixed
	on := m.ended(10 * time.Millisecond)
	flow := func(class uint8, start time.Duration, bytes int64) {
		on(sim.FlowEnd{Flow: workload.Flow{Class: class, Start: start, Bytes: bytes}, FCT: time.Millisecond})
	}
	flow(mouse, 0, mouseBytes) // too early
	flow(mouse, 20*time.Millisecond, mouseBytes)
	flow(elephant, 20*time.Millisecond, 125_000) // 1 Gbit/s
	flow(elephant, 20*time.Millisecond, 62_500)
	if len(m.mice) != 1 || m.mice[0] != 1000 || m.throughput() != 750 {
		t.Errorf("mice %v, elephants %v Mbit/s", m.mice, m.throughput())
	}
	// Two hosts' endless elephants: what was delivered, less a mouse.
	top := parse(t, "leaf-spine:leaves=2,spines=2,hosts=1")
	one := &mixed{mice: []float64{1}}
	one.endless(top, &sim.Result{DeliveredBytes: []int64{mouseBytes, 250_000}}, &mixed{mice: one.mice}, time.Millisecond)
	if got := one.throughput(); math.Abs(got-1000) > 1e-9 {
		t.Errorf("%v Mbit/s, want 1000", got)
	}
}
