package testbed

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// pauseTick is how often the watcher of a processor wakes. Less often than that nothing
	// but the machine keeps it from running.
	pauseTick = time.Millisecond
	// pauseLeast is the shortest pause that counts.
	pauseLeast = 5 * time.Millisecond
	// maxPauses bounds what is remembered; the oldest go first.
	maxPauses = 1 << 14
	// watchPriority is the highest real-time priority: no program comes before it.
	watchPriority = 99
)

// Pauses notes the times in which a processor did not run the thread of the highest
// priority: because what lies below this machine stopped it, or because the kernel was busy.
// It is safe for concurrent use.
type Pauses struct {
	mu   sync.Mutex
	seen []pause
	stop chan struct{}
	done sync.WaitGroup
}

type pause struct{ from, to time.Time }

// WatchPauses watches all processors that this process may use, each by a thread of its own
// that wakes a thousand times a second. It fails if the process may not have real-time
// threads (CAP_SYS_NICE). Call Close.
func WatchPauses() (*Pauses, error) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return nil, fmt.Errorf("processors: %w", err)
	}
	p := &Pauses{stop: make(chan struct{})}
	started, watchers := make(chan error), 0
	for cpu := range 1024 {
		if !all.IsSet(cpu) {
			continue
		}
		watchers++
		p.done.Add(1)
		go p.watch(cpu, started)
	}
	var errs []error
	for range watchers {
		errs = append(errs, <-started)
	}
	if err := errors.Join(errs...); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// watch never unlocks its thread, which so ends with it and keeps its priority to itself.
func (p *Pauses) watch(cpu int, started chan<- error) {
	defer p.done.Done()
	runtime.LockOSThread()
	var own unix.CPUSet
	own.Set(cpu)
	err := unix.SchedSetaffinity(0, &own)
	if err == nil {
		err = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: watchPriority}, 0)
	}
	if err != nil {
		started <- fmt.Errorf("a real-time thread on processor %d: %w", cpu, err)
		return
	}
	started <- nil
	tick := unix.NsecToTimespec(int64(pauseTick))
	for last := time.Now(); ; {
		select {
		case <-p.stop:
			return
		default:
		}
		unix.Nanosleep(&tick, nil)
		now := time.Now()
		if now.Sub(last) >= pauseLeast {
			p.note(pause{last, now})
		}
		last = now
	}
}

func (p *Pauses) note(x pause) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.seen) == maxPauses {
		p.seen = append(p.seen[:0], p.seen[maxPauses/2:]...)
	}
	p.seen = append(p.seen, x)
}

// Between reports whether a processor paused at any time between from and to.
func (p *Pauses) Between(from, to time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.seen {
		if x.from.Before(to) && from.Before(x.to) {
			return true
		}
	}
	return false
}

// Close ends the watchers.
func (p *Pauses) Close() {
	close(p.stop)
	p.done.Wait()
}
