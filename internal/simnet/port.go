package simnet

import (
	"time"

	"weft/topology"
)

// port is one end of a link, a FIFO queue in front of a wire. Instead of the
// packets it knows when the last of them will have left.
type port struct {
	peer      topology.NodeID
	busyUntil time.Duration
	limit     int   // of the queue, in bytes
	rate      int64 // bits per second
	built     int64 // the rate without an Impairment
	// full is longer than any queue takes at this rate; one that has built up
	// at a lower rate may take longer.
	full time.Duration
	// left is the part of a nanosecond beyond busyUntil, in 1/rate ns:
	// rounding never adds up, so the rate is exact.
	left  int64
	meter *meter // nil at hosts, and where nobody measures
	stats PortStats

	impaired   bool // packet by packet, in a way that is drawn
	impairment Impairment
}

// PortStats counts what one end of a link was given to send.
type PortStats struct {
	Packets  uint64 // accepted into the queue
	Bytes    uint64 // of these, with FrameOverhead each
	Drops    uint64 // packets that found the queue full
	MaxQueue int    // the longest queue so far in bytes, with FrameOverhead
	Marked   uint64 // with CE, by the Meter
	Raised   uint64 // had a lower CE field of CONGA's
}

// setRate changes the rate of what is sent from now on.
func (p *port) setRate(bits int64) {
	p.rate, p.left = bits, 0
	p.full = time.Duration(int64(p.limit)*8*int64(time.Second)/bits + 1)
	if p.meter != nil {
		p.meter.setRate(bits)
	}
}

// send queues a frame of size bytes at a time not before that of any earlier
// call, and returns when its last bit leaves; or false when the queue is full.
func (p *port) send(size int, at time.Duration) (done time.Duration, ok bool) {
	if p.busyUntil < at {
		p.busyUntil, p.left = at, 0
	}
	queue := p.limit
	if p.busyUntil-at <= p.full {
		queue = p.backlog(at)
	}
	if queue += size; queue > p.limit {
		p.stats.Drops++
		return 0, false
	}
	ns := int64(size)*8*int64(time.Second) + p.left
	p.busyUntil += time.Duration(ns / p.rate)
	p.left = ns % p.rate
	p.stats.Packets++
	p.stats.Bytes += uint64(size)
	p.stats.MaxQueue = max(p.stats.MaxQueue, queue)
	return p.busyUntil, true
}

// backlog returns the bytes that have not left yet, a begun one counted whole.
func (p *port) backlog(at time.Duration) int {
	const perByte = 8 * int64(time.Second)
	return int((int64(p.busyUntil-at)*p.rate + p.left + perByte - 1) / perByte)
}
