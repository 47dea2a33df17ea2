package dataplane

import (
	"time"

	"weft/flowcell"
)

// narrows holds the destinations to which switches have reported a smaller MTU than the
// device's. Egress cuts TCP segments for them. Netstack is not told: it can make a
// connection's segments smaller, but never larger again. narrows belongs to egress and is
// guarded by its lock.
//
// After a while egress lets packets go uncut, to see whether the path has a larger MTU
// again (an idea of RFC 4821): three packets, a second apart. If no switch complains, the
// report is forgotten. Each report about such a try doubles the time until the next, from
// narrowFor to narrowAtMost, which is how long Linux believes a report
// (net.ipv4.route.mtu_expires).
type narrows struct {
	all     map[flowcell.Address]*narrow
	order   []flowcell.Address // in which they were added
	evicted uint64
}

// narrow is one destination's.
type narrow struct {
	mtu   int           // bytes of an IP packet, without the outer header; 0: wide again
	wait  time.Duration // from a report to a try
	next  time.Duration // when a packet may go as it is
	tries int           // packets that have gone as they were since the latest report
}

const (
	maxNarrows   = 1 << 12
	narrowFor    = 10 * time.Second
	narrowAtMost = 10 * time.Minute
	narrowTries  = 3
	narrowPause  = time.Second // between tries
)

// report takes note of an MTU that a switch has reported. TCP sends again what was
// lost.
func (n *narrows) report(dst flowcell.Address, mtu int, now time.Duration) {
	d := n.all[dst]
	switch {
	case d == nil:
		d = &narrow{mtu: mtu, wait: narrowFor}
		n.add(dst, d)
	case d.tries > 0: // by a packet that has tried
		d.mtu, d.tries = mtu, 0
		d.wait = min(2*d.wait, narrowAtMost)
	default: // by another path, or about what was sent before
		d.mtu = min(d.mtu, mtu)
	}
	d.next = now + d.wait
}

func (n *narrows) add(dst flowcell.Address, d *narrow) {
	if n.all == nil {
		n.all = make(map[flowcell.Address]*narrow)
	}
	if len(n.order) == maxNarrows {
		delete(n.all, n.order[0])
		n.order = n.order[:copy(n.order, n.order[1:])]
		n.evicted++
	}
	n.all[dst] = d
	n.order = append(n.order, dst)
}

// limit returns how long a packet of size bytes to a destination may be; 0 if it may
// go as it is.
func (n *narrows) limit(dst flowcell.Address, size int, now time.Duration) int {
	d := n.all[dst]
	if d == nil || d.mtu == 0 || size <= d.mtu {
		return 0
	}
	if now < d.next {
		return d.mtu
	}
	if d.tries == narrowTries {
		d.mtu = 0
		return 0
	}
	d.tries++
	d.next = now + narrowPause
	return 0
}

// narrow takes note of the MTU to a destination that a switch reports.
func (e *Egress) narrow(dst flowcell.Address, mtu int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.narrows.report(dst, mtu, e.clock.Now())
}

// fit makes a TCP packet be cut if it is too long for the way to its destination.
func (e *Egress) fit(o *Outgoing) {
	pkt := &o.pkt
	if !pkt.IsTCP() || pkt.Extensions {
		return
	}
	headers := pkt.Length - int(pkt.Payload)
	size := o.size
	if o.MSS > 0 {
		size = min(size, headers+o.MSS)
	}
	if limit := e.narrows.limit(pkt.Flow.Dst, size, e.clock.Now()); limit > headers {
		o.MSS, o.narrow = limit-headers, true
		e.stats.Narrowed++
	}
}
