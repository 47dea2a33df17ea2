package stack

import (
	"sync"
	"time"
)

// deadline is a point in time after which calls on a socket fail. The zero
// value never comes.
type deadline struct {
	mu      sync.Mutex
	timer   *time.Timer
	expired chan struct{}
}

// done returns a channel that is closed once the deadline has passed. A
// deadline that is moved before it has passed moves for those who wait, too.
func (d *deadline) done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.channel()
}

func (d *deadline) channel() chan struct{} {
	if d.expired == nil {
		d.expired = make(chan struct{})
	}
	return d.expired
}

// set moves the deadline; the zero time removes it.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ch := d.channel()
	if d.timer != nil && !d.timer.Stop() {
		<-ch // the timer has fired: let it finish before the channel is replaced
	}
	d.timer = nil
	select {
	case <-ch:
		ch = make(chan struct{})
		d.expired = ch
	default:
	}
	if t.IsZero() {
		return
	}
	if wait := time.Until(t); wait > 0 {
		d.timer = time.AfterFunc(wait, func() { close(ch) })
	} else {
		close(ch)
	}
}
