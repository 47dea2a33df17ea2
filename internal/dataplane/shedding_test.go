package dataplane

import (
	"testing"
	"time"
)

// reader is one that has time for so many packets in a millisecond, a batch at a time, and waits
// where there are none. Its flows send evenly.
type reader struct {
	sheds    shedding
	now      time.Duration
	waiting  float64
	capacity float64         // packets in a millisecond
	flows    map[int]float64 // what each part sends in a millisecond, while it is served
}

func newReader(capacity float64, flows map[int]float64) *reader {
	return &reader{sheds: newShedding(256), capacity: capacity, flows: flows}
}

// even is a load of all parts together.
func even(load float64) map[int]float64 {
	flows := make(map[int]float64)
	for i := range 256 {
		flows[i] = load / 256
	}
	return flows
}

func serves(s *shedding, part int) bool { return (part-s.from+256)%256 < s.parts }

// load is what arrives in a millisecond.
func (r *reader) load() (n float64) {
	for part, load := range r.flows {
		if serves(&r.sheds, part) {
			n += load
		}
	}
	return n
}

// run lets a time pass. It returns how much was served, a millisecond, and how often each flow
// came back.
func (r *reader) run(d time.Duration) (served float64, back map[int]int) {
	back = make(map[int]int)
	load, begin := r.load(), r.now
	for until := r.now + d; r.now < until; {
		waited := r.waiting < 1
		step := time.Duration(0)
		if waited { // until there is one, or it beats
			step = beatEvery
			if load > 0 {
				step = min(step, time.Microsecond+time.Duration((1-r.waiting)/load*float64(time.Millisecond)))
			}
			r.waiting += load * step.Seconds() * 1000
		}
		took := min(float64(int(r.waiting)), superBatch)
		work := time.Duration(took / r.capacity * float64(time.Millisecond))
		r.waiting += load*work.Seconds()*1000 - took
		served += took
		r.now += step + work
		if was := r.sheds; r.sheds.read(waited || took < superBatch, r.now) {
			for part := range r.flows {
				if !serves(&was, part) && serves(&r.sheds, part) {
					back[part]++
				}
			}
			load = r.load()
		}
	}
	return served / (r.now - begin).Seconds() / 1000, back
}

// A reader keeps what it has time for, whatever that is, and takes back the rest when the load
// falls. All have their turn.
func TestShedding_findsWhatThereIsTimeFor(t *testing.T) {
	for _, capacity := range []float64{2, 10, 40, 90} {
		r := newReader(capacity, even(100))
		r.run(20 * time.Second)
		served, back := r.run(40 * time.Second)
		if served > 1.05*capacity || served < 0.5*capacity {
			t.Errorf("with time for %v packets of 100 it orders %.1f", capacity, served)
		}
		if len(back) != 256 {
			t.Errorf("with time for %v packets of 100 only %d of 256 parts have their turn", capacity, len(back))
		}
		r.flows = even(capacity * 0.9)
		if r.run(10 * time.Second); r.sheds.parts != 256 {
			t.Errorf("with time for %v packets it orders %d parts of 256 of a smaller load", capacity, r.sheds.parts)
		}
	}
}

// Few flows, which are too much together or alone, are not shed and taken back all the time.
func TestShedding_fewFlows(t *testing.T) {
	for _, parts := range [][]int{{3}, {100}, {250}, {7, 70, 170, 250}} {
		flows := make(map[int]float64)
		for _, p := range parts {
			flows[p] = 100 / float64(len(parts))
		}
		r := newReader(40, flows)
		_, back := r.run(time.Minute)
		for part, n := range back {
			if n > 30 {
				t.Errorf("%d flows: that of part %d came back %d times in a minute", len(parts), part, n)
			}
		}
	}
}

// Bursts, behind each of which the queue empties, shed nothing, however many packets they have. Nor
// does a reader that was not run for a while.
func TestShedding_bursts(t *testing.T) {
	for burst := range 4 * superBatch {
		r := newReader(40, nil)
		for range 100 {
			r.waiting += float64(burst)
			r.run(250 * time.Millisecond)
			r.now += 200 * time.Millisecond
		}
		if r.sheds.parts != 256 {
			t.Errorf("bursts of %d packets: %d parts of 256 are left", burst, r.sheds.parts)
		}
	}
}
