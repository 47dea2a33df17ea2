package aqm

import (
	"math"
	"testing"
	"time"
)

// steady returns the share of packets that RED chooses where the queue is as long for long.
func steady(t *testing.T, queue float64, c REDConfig) float64 {
	t.Helper()
	r, err := NewRED(c)
	if err != nil {
		t.Fatal(err)
	}
	const settled, packets = 1000, 200_000
	chosen := 0
	for i := range settled + packets {
		r.queue.length = queue // what nobody drains: the clock stands
		if r.Arrive(Arrival{Bytes: 1000, Capable: true}) != Pass && i >= settled {
			chosen++
		}
	}
	return float64(chosen) / packets
}

// RED's share of chosen packets: with p_b, and packets counted as the algorithm does, the gap
// between two chosen is uniform from 1 to 1/p_b - 1, so that 2·p_b of them are (Floyd and
// Jacobson §7).
func TestRED_choosesByTheAverage(t *testing.T) {
	c := REDConfig{Queue: VirtualQueue{RateMbit: 1000}, Min: 20_000, Max: 60_000, MaxP: .1, Weight: .1, Mark: true, Seed: 1}
	for _, x := range []struct{ queue, p float64 }{{10_000, 0}, {20_000, 0}, {30_000, .025}, {40_000, .05}, {58_000, .095}, {61_000, 1}} {
		want := min(2*x.p, 1)
		if got := steady(t, x.queue, c); math.Abs(got-want) > .02*want {
			t.Errorf("queue of %v: %.4f are chosen, want %.4f", x.queue, got, want)
		}
	}
}

func TestRED_marksOnlyWhoIsCapable(t *testing.T) {
	c := REDConfig{Queue: VirtualQueue{RateMbit: 1000}, Min: 1000, Max: 1e9, MaxP: 1, Weight: 1, Mark: true, Seed: 1}
	for _, x := range []struct {
		capable, mark bool
		want          Verdict
	}{{true, true, Mark}, {false, true, Drop}, {true, false, Drop}} {
		c.Mark = x.mark
		r, err := NewRED(c)
		if err != nil {
			t.Fatal(err)
		}
		seen := make(map[Verdict]int)
		for range 10_000 {
			r.queue.length = 5e8
			seen[r.Arrive(Arrival{Bytes: 1000, Capable: x.capable})]++
		}
		if len(seen) != 2 || seen[x.want] == 0 {
			t.Errorf("%+v: %v", x, seen)
		}
	}
}

// What RED drops is not in its queue. The average falls while the queue is empty, as if packets
// had found nothing, and not once more for the packet that ends that; where the queue is just
// empty it stays.
func TestRED_average(t *testing.T) {
	c := REDConfig{Queue: VirtualQueue{RateMbit: 1000}, Min: 1000, Max: 2000, MaxP: .1, Weight: .5}
	r, err := NewRED(c)
	if err != nil {
		t.Fatal(err)
	}
	r.queue.length = 10_000
	if got := r.Arrive(Arrival{Bytes: 1000}); got != Drop || r.queue.length != 10_000 || r.average != 5000 {
		t.Fatalf("%v, queue %v, average %v", got, r.queue.length, r.average)
	}
	// 80 µs drain it, and three packets of 1,500 bytes take 36 µs. The packet then takes 8.
	for _, x := range []struct {
		at   time.Duration
		want float64
	}{{116, 5000. / 8}, {124, 5000. / 8}, {132 + 12, 5000. / 16}, {144 + 4, (500 + 5000./16) / 2}} {
		r.Arrive(Arrival{Now: x.at * time.Microsecond, Bytes: 1000})
		if math.Abs(r.average-x.want) > 1e-6 {
			t.Errorf("at %d µs: average %v, want %v", x.at, r.average, x.want)
		}
	}
}
