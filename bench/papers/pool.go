package papers

import (
	"cmp"
	"slices"
	"sync"
)

// pool hands out places, of which there are as many as simulations may run at once. Who
// asks gets a place by order, the least first, and of one order who asked first. So what
// began first ends first, and little is under way at a time. Who has a place and wants
// another one asks before it leaves, so that nobody of a greater order comes between.
type pool struct {
	over func() bool // nobody may begin any more; stop wakes who waits

	mu      sync.Mutex
	free    int // 0 while somebody waits
	stopped bool
	waiting []ticket // by order, then arrival
}

// ticket is a place that was asked for.
type ticket struct {
	order   int
	granted chan bool
}

func newPool(places int, over func() bool) *pool { return &pool{free: max(places, 1), over: over} }

// ask asks for a place, without waiting for it.
func (p *pool) ask(order int) ticket {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := ticket{order, make(chan bool, 1)}
	switch {
	case p.stopped:
		t.granted <- false
	case p.free > 0:
		p.free--
		t.granted <- true
	default:
		i, _ := slices.BinarySearchFunc(p.waiting, order+1, func(t ticket, order int) int { return cmp.Compare(t.order, order) })
		p.waiting = slices.Insert(p.waiting, i, t)
	}
	return t
}

// enter waits for a place that was asked for. It is false if the pool is over or has
// stopped.
func (p *pool) enter(t ticket) bool {
	if !<-t.granted {
		return false
	}
	if p.over() {
		p.leave()
		return false
	}
	return true
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
	for _, t := range p.waiting {
		t.granted <- false
	}
	p.waiting = nil
}
