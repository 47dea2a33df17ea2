package aqm

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// fifo is what the virtual queue stands for: packets that leave one after the other. It is
// the oracle.
type fifo struct {
	rate, room float64
	leaves     []float64 // of each packet that waits, in seconds
	sizes      []int
	free       float64
}

func (f *fifo) put(at time.Duration, bytes int) (found float64, ok bool) {
	now := at.Seconds()
	for len(f.leaves) > 0 && f.leaves[0] <= now {
		f.leaves, f.sizes = f.leaves[1:], f.sizes[1:]
	}
	for i, n := range f.sizes {
		found += float64(n)
		if i == 0 { // of the one on the wire what has not left
			found += min(0, (f.leaves[0]-now)*f.rate-float64(n))
		}
	}
	if f.room > 0 && found+float64(bytes) > f.room {
		return found, false
	}
	f.free = max(f.free, now) + float64(bytes)/f.rate
	f.leaves, f.sizes = append(f.leaves, f.free), append(f.sizes, bytes)
	return found, true
}

// A virtual queue is as long as the queue would be.
func TestVirtualQueue_followsAQueue(t *testing.T) {
	for _, room := range []int{0, 40_000} {
		q := VirtualQueue{RateMbit: 1000, Room: room}
		f := fifo{rate: 125e6, room: float64(room)}
		rng := rand.New(rand.NewPCG(uint64(room), 1))
		now, dropped, emptied := time.Duration(0), 0, 0
		for range 20_000 {
			gap := 6 * time.Microsecond // a full packet takes 12
			if rng.IntN(200) == 0 {
				gap = time.Duration(rng.IntN(2_000_000))
			}
			now += gap
			bytes := 64 + rng.IntN(1437)
			length := q.Length(now)
			got, ok := q.Put(now, bytes)
			want, fits := f.put(now, bytes)
			if math.Abs(got-want) > 1 || ok != fits || math.Abs(length-want) > 1 {
				t.Fatalf("room %d, at %v: finds %.1f, %v; a queue has %.1f, %v", room, now, got, ok, want, fits)
			}
			if !ok {
				dropped++
			}
			if got == 0 {
				emptied++
			}
		}
		if (dropped > 0) != (room > 0) || emptied == 0 {
			t.Errorf("room %d: %d dropped, empty %d times", room, dropped, emptied)
		}
	}
}

func TestThreshold_marksWhatFindsMore(t *testing.T) {
	q := Threshold{VirtualQueue: VirtualQueue{RateMbit: 1000}, Bytes: 3000}
	for i, want := range []Verdict{Pass, Pass, Pass, Mark, Mark} { // 0, 1500, 3000, 4500, 6000
		if got := q.Arrive(Arrival{Bytes: 1500, Capable: true}); got != want {
			t.Errorf("packet %d: %v, want %v", i, got, want)
		}
	}
	if got := q.Arrive(Arrival{Bytes: 1500}); got != Pass {
		t.Errorf("a packet that is not capable: %v", got)
	}
	if got := q.Arrive(Arrival{Now: time.Second, Bytes: 1500, Capable: true}); got != Pass {
		t.Errorf("a second later: %v", got)
	}
}

// A queue that drains slower than the link marks at less load than the link's (phantom
// queues): 95 % of a link never fills a queue that drains at all of it, and does one of 90 %.
func TestThreshold_marksBeforeTheLinkIsFull(t *testing.T) {
	for rate, want := range map[float64]bool{1000: false, 900: true} {
		q := Threshold{VirtualQueue: VirtualQueue{RateMbit: rate}, Bytes: 10_000}
		marks := 0
		for i := range 10_000 {
			if q.Arrive(Arrival{Now: time.Duration(i) * 12_632, Bytes: 1500, Capable: true}) == Mark {
				marks++
			}
		}
		if (marks > 0) != want {
			t.Errorf("drained at %v Mbit/s: %d marks", rate, marks)
		}
	}
}

func TestCheck_namesTheField(t *testing.T) {
	good := REDConfig{Queue: VirtualQueue{RateMbit: 1000}, Min: 1, Max: 2, MaxP: .1, Weight: .1}
	if _, err := NewRED(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*REDConfig){
		"rate":     func(c *REDConfig) { c.Queue.RateMbit = 0 },
		"not a":    func(c *REDConfig) { c.Queue.RateMbit = math.NaN() },
		"room":     func(c *REDConfig) { c.Queue.Room = -1 },
		"min":      func(c *REDConfig) { c.Min = 0 },
		"max":      func(c *REDConfig) { c.Max = 1 },
		"maxP":     func(c *REDConfig) { c.MaxP = 0 },
		"maxP > 1": func(c *REDConfig) { c.MaxP = 1.1 },
		"weight":   func(c *REDConfig) { c.Weight = 0 },
	} {
		c := good
		change(&c)
		if _, err := NewRED(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
