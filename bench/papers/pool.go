package papers

import (
	"cmp"
	"slices"
	"sync"
)

// pool hands out places, of which there are as many as simulations may run at once. Who
// waits gets a place by order, the least first, and of one order who came first. So what
// began first ends first, and little is under way at a time.
type pool struct {
	mu      sync.Mutex
	free    int // 0 while somebody waits
	stopped bool
	waiting []waiter // by order, then arrival
}

type waiter struct {
	order   int
	granted chan bool
}

func newPool(places int) *pool { return &pool{free: max(places, 1)} }

// enter waits for a place. It is false if the pool has stopped.
func (p *pool) enter(order int) bool {
	p.mu.Lock()
	switch {
	case p.stopped:
		p.mu.Unlock()
		return false
	case p.free > 0:
		p.free--
		p.mu.Unlock()
		return true
	}
	w := waiter{order, make(chan bool, 1)}
	i, _ := slices.BinarySearchFunc(p.waiting, order+1, func(w waiter, order int) int { return cmp.Compare(w.order, order) })
	p.waiting = slices.Insert(p.waiting, i, w)
	p.mu.Unlock()
	return <-w.granted
}

// leave gives a place back.
func (p *pool) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 {
		p.free++
		return
	}
	p.waiting[0].granted <- true
	p.waiting = slices.Delete(p.waiting, 0, 1)
}

// stop sends all away who wait or will come.
func (p *pool) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	for _, w := range p.waiting {
		w.granted <- false
	}
	p.waiting = nil
}
