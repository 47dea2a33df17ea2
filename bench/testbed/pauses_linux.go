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
	watchers int

	mu   sync.Mutex
	seen []pause
	stop chan struct{}
	done sync.WaitGroup
}

type pause struct{ from, to time.Time }

// WatchPauses watches all processors that this process may use, each by a thread of its own
// that wakes a thousand times a second. It raises GOMAXPROCS by as many until Close, so that
// none waits for goroutines of this process. It fails if the process may not have real-time
// threads (CAP_SYS_NICE). Call Close.
func WatchPauses() (*Pauses, error) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return nil, fmt.Errorf("processors: %w", err)
	}
	p := &Pauses{stop: make(chan struct{}), watchers: all.Count()}
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + p.watchers)
	started := make(chan error)
	for cpu := range 1024 {
		if !all.IsSet(cpu) {
			continue
		}
		p.done.Add(1)
		go p.watch(cpu, started)
	}
	var errs []error
	for range p.watchers {
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
	if err := takeCPU(cpu); err != nil {
		started <- fmt.Errorf("a real-time thread on processor %d: %w", cpu, err)
		return
	}
	last := time.Now() // before anybody else may hold the processor
	started <- nil
	tick := unix.NsecToTimespec(int64(pauseTick))
	for {
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

// takeCPU puts the calling thread before all others of a processor. None of the same priority
// interrupts it.
func takeCPU(cpu int) error {
	var own unix.CPUSet
	own.Set(cpu)
	if err := unix.SchedSetaffinity(0, &own); err != nil {
		return err
	}
	return unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: watchPriority}, 0)
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
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) - p.watchers)
}
