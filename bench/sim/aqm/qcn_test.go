package aqm

import (
	"testing"
	"time"

	"weft/internal/qcn"
)

const mbit = 1e6 / 8

func thesis() QCNConfig {
	return QCNConfig{
		Queue:    VirtualQueue{RateMbit: 1000, Room: 100_000},
		Point:    qcn.Parameters{Target: 20_000, Weight: 1, MinP: .01, MaxP: .2, Plateau: 32, Seed: 1},
		Reaction: qcn.Config{Floor: 10 * mbit, Limit: 1000 * mbit, Increase: 1.5 * mbit, Timer: -1},
		LineMbit: 1000, Delay: 100 * time.Microsecond, Burst: 3000,
	}
}

// A flow of which nobody is told passes whole. One that is told of is held to its rate from
// when the message arrives, and not before.
func TestQCN_holdsAFlowToItsRate(t *testing.T) {
	q, err := NewQCN(thesis())
	if err != nil {
		t.Fatal(err)
	}
	q.sent = append(q.sent, message{at: time.Millisecond, flow: 7, level: 63})
	passed := [2]map[uint64]int{{}, {}}
	for i := range 1000 { // at a packet of each of two flows in 12 µs, 12 ms
		now := time.Duration(i) * 12 * time.Microsecond
		for _, flow := range []uint64{7, 8} {
			if q.Reaction().Arrive(Arrival{Now: now, Flow: flow, Bytes: 1500}) == Pass {
				after := 0
				if now >= time.Millisecond {
					after = 1
				}
				passed[after][flow]++
			}
		}
	}
	if passed[0][7] != 84 || passed[0][8] != 84 || passed[1][8] != 916 {
		t.Errorf("%v pass where nobody is slowed, want 84 and 916", passed)
	}
	// 63 of 128 less, for a hundred packets; then 3/4, 7/8 and so on.
	if n := passed[1][7]; n < 700 || n > 830 {
		t.Errorf("%d of 916 packets of the flow that is slowed", n)
	}
	// Of 1.84 Gbit/s and more that pass, a queue that drains at 1 is full.
	if most := q.MostPassed(); most < 98_500 || most > 100_000 || q.Most() != 0 {
		t.Errorf("what passed would have held %v bytes at most, and the congestion point has held %v", most, q.Most())
	}
	if q.Forget(); q.MostPassed() != 0 {
		t.Error("the most is not forgotten")
	}
}

// Messages that nobody hears do not pile up.
func TestQCN_boundsMessages(t *testing.T) {
	q, err := NewQCN(thesis())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100_000 {
		q.Congestion().Arrive(Arrival{Now: time.Duration(i) * 4 * time.Microsecond, Bytes: 1500})
	}
	if len(q.sent) != maxMessages || q.sent[0].at > q.sent[maxMessages-1].at || q.Sampled() < 10_000 || q.Most() < 98_500 {
		t.Errorf("%d messages of %d, queue up to %v", len(q.sent), q.Sampled(), q.Most())
	}
}
