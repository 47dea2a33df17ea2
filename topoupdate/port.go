package topoupdate

import (
	"time"

	"weft/internal/bucket"
	"weft/topology"
)

// port is one port of a switch: its link, its neighbour, and what waits to be
// sent by it.
type port struct {
	topology.Port
	dir     direction
	carrier bool
	adj     adjacency // of a switch; a server has none
	link    damped

	stranger stranger

	counter   uint64 // of messages sent
	helloDue  time.Duration
	helloSent time.Duration
	// pending are the switches, by their index, whose records must be sent. The newest
	// record is sent, so the queue holds each switch once, however long it waits.
	pending bitset
	waiting bool          // pending is not empty
	pace    bucket.Bucket // messages that may leave
	budget  bucket.Bucket // news that may come in
}

// works tells whether a link works, damping aside.
func (p *port) works() bool {
	return p.carrier && (p.dir == toHost || p.adj.alive)
}

// listening reports whether somebody at the other end takes updates.
func (p *port) listening() bool {
	return p.carrier && (p.dir == toHost || p.adj.proven)
}

func (p *port) enqueue(index int) {
	p.pending.add(index)
	p.waiting = true
}

func (p *port) drop() {
	clear(p.pending)
	p.waiting = false
}

// next returns when something is due at this port by itself.
func (p *port) next() time.Duration {
	t := p.link.next()
	if p.dir != toHost {
		t = min(t, p.helloDue, p.adj.deadline)
	}
	if p.waiting && p.listening() {
		t = min(t, p.pace.Ready(1))
	}
	return t
}
