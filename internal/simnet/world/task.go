package world

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"weft/stack"
)

// task is one side of an application: a function that goes on as far as it can
// without waiting.
type task struct {
	run    func()
	queued bool
}

// wake has a task run once the host that wakes it has come to rest. It may be
// called by netstack's goroutines.
func (w *World) wake(t *task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !t.queued {
		t.queued = true
		w.ready = append(w.ready, t)
	}
}

// runReady runs the tasks that are ready, in the order in which they became so.
func (w *World) runReady() {
	for i := 0; ; i++ {
		w.mu.Lock()
		if i == len(w.ready) {
			w.ready = w.ready[:0]
			w.mu.Unlock()
			return
		}
		t := w.ready[i]
		w.ready[i], t.queued = nil, false
		w.mu.Unlock()
		t.run()
	}
}

// firstPort is the first that a transfer takes to listen on; each has its own.
const firstPort = 1024

// connect opens a connection and attends to its ends.
func (w *World) connect(from, to string, client, server work) error {
	a, b := w.Host(from), w.Host(to)
	if a == nil || b == nil {
		return fmt.Errorf("no connection from %s to %s", from, to)
	}
	if w.port = max(w.port+1, firstPort); w.port == 0xffff {
		return errors.New("world: too many flows, their ports are used up")
	}
	addr := b.Address()
	if w.config.IPv6 {
		addr = b.Address6()
	}
	address := netip.AddrPortFrom(addr, w.port).String()
	l, err := b.Listen("tcp", address)
	if err != nil {
		return err
	}
	accept := &task{}
	accept.run = func() {
		if c, err := l.Accept(); err == nil {
			l.Close()
			w.attend(c, server)
		}
	}
	l.(stack.Notifier).Notify(func() { w.wake(accept) })
	c, err := a.DialContext(context.Background(), "tcp", address)
	if err != nil {
		l.Close()
		return err
	}
	w.attend(c, client)
	return nil
}

// end is one end of a connection.
type end struct {
	net.Conn
	task
	closed bool
}

// work is what is to be done at one end, as far as it goes without waiting;
// false when there is no more.
type work func(*end) (more bool)

// attend calls f now and whenever there may be something to do, and closes the
// connection when f is done.
func (w *World) attend(c net.Conn, f work) {
	e := &end{Conn: c}
	e.run = func() {
		if !e.closed && !f(e) {
			e.closed = true
			c.Close()
		}
	}
	c.(stack.Notifier).Notify(func() { w.wake(&e.task) })
	w.wake(&e.task)
}
