package papers

import (
	"runtime"
	"sync"
	"time"
)

// turn is a unit's share of a pool: its own goroutine has a place while it sets up and sums
// up, and gives it away to simulations while these run. It adds up the time on processors
// that all of them take. A goroutine with a place has a thread of its own, as only threads
// tell their time. A nil turn is of a run with no pool.
type turn struct {
	pool  *pool
	order int
	began time.Duration // of the unit's own goroutine
	away  bool          // its place is given away

	mu  sync.Mutex
	cpu time.Duration
}

// begin takes over a place that somebody else has entered.
func (t *turn) begin() {
	runtime.LockOSThread()
	t.began = threadTime()
}

// end gives the own goroutine's place back, if it has one.
func (t *turn) end() {
	if !t.away {
		t.leave(t.began)
	}
}

// pause gives the place of the own goroutine away while it waits for its simulations.
func (t *turn) pause() {
	if t != nil {
		t.leave(t.began)
		t.away = true
	}
}

// resume takes the place again that was asked for. It is false if the pool is over.
func (t *turn) resume(place ticket) bool {
	if t == nil {
		return true
	}
	began, ok := t.enter(place)
	t.began, t.away = began, !ok
	return ok
}

// ask asks for a place for a simulation, or for the own goroutine.
func (t *turn) ask() (place ticket) {
	if t != nil {
		place = t.pool.ask(t.order)
	}
	return place
}

// enter waits for a place for a simulation. It is false if the pool is over.
func (t *turn) enter(place ticket) (began time.Duration, ok bool) {
	if t == nil {
		return 0, true
	}
	if !t.pool.enter(place) {
		return 0, false
	}
	runtime.LockOSThread()
	return threadTime(), true
}

// leave gives the place back that enter took.
func (t *turn) leave(began time.Duration) {
	if t == nil {
		return
	}
	t.mu.Lock()
	t.cpu += threadTime() - began
	t.mu.Unlock()
	runtime.UnlockOSThread()
	t.pool.leave()
}

// taken is the time on processors until now.
func (t *turn) taken() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cpu
}
