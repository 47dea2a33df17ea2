package world

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestClock_firesInOrder(t *testing.T) {
	var c clock
	var got []string
	note := func(s string) func() { return func() { got = append(got, s) } }
	c.AfterFunc(2, note("c"))
	c.AfterFunc(1, note("a"))
	c.AfterFunc(1, note("b"))
	c.AfterFunc(-5, note("now"))
	late := c.AfterFunc(9, note("stopped"))
	moved := c.AfterFunc(1, note("moved"))
	if !late.Stop() || late.Stop() {
		t.Error("Stop: want true once")
	}
	if !moved.Reset(2) {
		t.Error("Reset of a timer that is set: false")
	}
	for {
		at, ok := c.next()
		if !ok {
			break
		}
		if c.fire(); c.Now() != at {
			t.Errorf("fired at %v, said %v", c.Now(), at)
		}
	}
	if want := []string{"now", "a", "b", "c", "moved"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if moved.Reset(3) {
		t.Error("Reset of a timer that has fired: true")
	}
	if at, ok := c.next(); !ok || at != 5 {
		t.Errorf("next %v, %v", at, ok)
	}
}

// TestClock_likeASortedList sets, moves and stops timers at random, beside a
// list that is searched.
func TestClock_likeASortedList(t *testing.T) {
	type entry struct {
		timer interface {
			Stop() bool
			Reset(time.Duration) bool
		}
		at  time.Duration
		set int
		on  bool
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var c clock
	var all []*entry
	fired := -1
	for step := range 20000 {
		switch rng.IntN(4) {
		case 0:
			d := time.Duration(rng.IntN(50))
			e := &entry{at: c.Now() + d, set: step, on: true}
			n := len(all)
			e.timer = c.AfterFunc(d, func() { fired = n })
			all = append(all, e)
		case 1:
			if len(all) > 0 {
				e, d := all[rng.IntN(len(all))], time.Duration(rng.IntN(50))
				if e.timer.Reset(d) != e.on {
					t.Fatalf("step %d: Reset says %v", step, !e.on)
				}
				e.at, e.set, e.on = c.Now()+d, step, true
			}
		case 2:
			if len(all) > 0 {
				e := all[rng.IntN(len(all))]
				if e.timer.Stop() != e.on {
					t.Fatalf("step %d: Stop says %v", step, !e.on)
				}
				e.on = false
			}
		case 3:
			want := -1
			for i, e := range all {
				if e.on && (want < 0 || e.at < all[want].at || e.at == all[want].at && e.set < all[want].set) {
					want = i
				}
			}
			if _, ok := c.next(); ok != (want >= 0) {
				t.Fatalf("step %d: next says %v", step, ok)
			}
			if want >= 0 {
				if c.fire(); fired != want || c.Now() != all[want].at {
					t.Fatalf("step %d: timer %d fired at %v, want %d at %v", step, fired, c.Now(), want, all[want].at)
				}
				all[want].on = false
			}
		}
	}
}
