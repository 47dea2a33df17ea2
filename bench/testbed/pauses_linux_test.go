package testbed

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestPauses_between(t *testing.T) {
	t0 := time.Now()
	at := func(ms int) time.Time { return t0.Add(time.Duration(ms) * time.Millisecond) }
	var p Pauses
	p.note(pause{at(10), at(30)})
	p.note(pause{at(100), at(106)})
	for _, c := range []struct {
		from, to int
		want     bool
	}{{0, 10, false}, {0, 11, true}, {15, 20, true}, {29, 40, true}, {30, 100, false}, {0, 200, true}, {106, 200, false}} {
		if got := p.Between(at(c.from), at(c.to)); got != c.want {
			t.Errorf("a pause from %d to %d ms: %v, want %v", c.from, c.to, got, c.want)
		}
	}
	for i := range 3 * maxPauses {
		p.note(pause{at(1000 + i), at(1001 + i)})
	}
	if len(p.seen) > maxPauses || p.Between(at(0), at(200)) || !p.Between(at(1000+3*maxPauses-1), at(1000+3*maxPauses)) {
		t.Errorf("%d pauses are remembered, not the latest", len(p.seen))
	}
}

// A program whose deadline comes before the highest priority holds a processor. It looks to
// the watcher as a machine that stops.
func TestPauses_seesThem(t *testing.T) {
	p, err := WatchPauses()
	if errors.Is(err, unix.EPERM) {
		t.Skipf("needs CAP_SYS_NICE: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	seen := make(chan error)
	for range 5 { // once might be a pause of the machine itself
		go func() {
			runtime.LockOSThread() // and ends with the goroutine
			held := 20 * time.Millisecond
			err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_DEADLINE,
				Runtime: uint64(2 * held), Deadline: uint64(4 * held), Period: uint64(4 * held)}, 0)
			if err == nil {
				from := time.Now()
				for time.Since(from) < held {
				}
				time.Sleep(10 * time.Millisecond) // the watcher notices
				if !p.Between(from.Add(held/4), from.Add(held/2)) {
					err = errors.New("a processor was held for 20 ms, and no pause is noted")
				}
			}
			seen <- err
		}()
		if err := <-seen; err != nil {
			if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EBUSY) {
				t.Skipf("no program may hold a processor here: %v", err)
			}
			t.Fatal(err)
		}
	}
}
