package testbed

import (
	"errors"
	"fmt"
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

// A thread of the same priority holds a processor. It looks to the watcher as a machine that
// stops.
func TestPauses_seesThem(t *testing.T) {
	p, err := WatchPauses()
	if errors.Is(err, unix.EPERM) {
		t.Skipf("needs CAP_SYS_NICE: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	cpu := 0
	for !all.IsSet(cpu) {
		cpu++
	}
	seen := make(chan error)
	for range 5 { // once might be a pause of the machine itself
		go func() {
			runtime.LockOSThread() // and ends with the goroutine
			err := takeCPU(cpu)
			if err == nil {
				err = holdCPU(p, 20*time.Millisecond)
			}
			seen <- err
		}()
		if err := <-seen; err != nil {
			t.Fatal(err)
		}
	}
}

// holdCPU holds the processor of this thread for a while, and waits for that to be noted.
func holdCPU(p *Pauses, held time.Duration) error {
	from := time.Now()
	for time.Since(from) < held {
	}
	for time.Since(from) < 5*time.Second {
		if p.Between(from.Add(held/4), from.Add(held/2)) {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return fmt.Errorf("a processor was held for %v, and no pause is noted", held)
}
