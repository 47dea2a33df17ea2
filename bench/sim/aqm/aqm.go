// Package aqm is active queue management as a bump in the wire does it, in front of a
// switch's port (thesis chapter 5): a VirtualQueue follows what waits at the port, and a
// Discipline decides by it what becomes of each packet. Threshold marks as DCTCP wants it,
// RED is Random Early Detection, QCN is quantized congestion notification. None of them
// holds packets.
//
// The package is pure: no I/O, no clock, no goroutine. Random numbers come from a seed.
// Nothing in it is safe for concurrent use.
package aqm

import (
	"fmt"
	"time"
)

// Arrival is a packet that comes to a port.
type Arrival struct {
	Now     time.Duration
	Flow    uint64 // the same for all packets of a sender to a receiver
	Bytes   int    // on the wire
	Queue   int    // bytes that wait at the port
	Capable bool   // switches may mark it
}

// Verdict is what becomes of a packet.
type Verdict uint8

// The verdicts.
const (
	Pass Verdict = iota
	Mark         // if it is capable; a discipline says so only of packets that are
	Drop
)

// Discipline manages the queue of one port.
type Discipline interface {
	// Arrive takes all packets that come to the port, in order of time.
	Arrive(a Arrival) Verdict
}

// VirtualQueue is a leaky bucket that is filled by what passes and drained at a rate, as the
// queue of a port is (thesis §5.2.1, Fig. 5.5). The zero value is an error; see Check.
type VirtualQueue struct {
	// RateMbit is what it drains at: the port's rate, or less to have it grow before the
	// port's own.
	RateMbit float64
	// Room is the size in bytes: what does not fit is dropped behind, and does not count.
	// 0: there is no bound.
	Room int

	length float64 // bytes, at last
	last   time.Duration
	empty  time.Duration // how long it had been empty when the last packet came
}

// Check says what is wrong with a VirtualQueue.
func (q *VirtualQueue) Check() error {
	switch {
	case !(q.RateMbit > 0 && q.RateMbit <= 1e6):
		return fmt.Errorf("aqm: VirtualQueue.RateMbit is %v; want more than 0, at most 1e6", q.RateMbit)
	case q.Room < 0:
		return fmt.Errorf("aqm: VirtualQueue.Room is %d; want 0 for no bound, or more", q.Room)
	}
	return nil
}

// Length is what waits at a time, in bytes. Time does not go back: before the last packet it
// is what waited then.
func (q *VirtualQueue) Length(now time.Duration) float64 {
	return max(0, q.length-q.drained(now))
}

// drained is what may have left since the last packet.
func (q *VirtualQueue) drained(now time.Duration) float64 {
	return max(0, (now-q.last).Seconds()) * q.RateMbit * 1e6 / 8
}

// Put adds a packet and returns what it finds. It is not ok, and does not count, if it does
// not fit.
func (q *VirtualQueue) Put(now time.Duration, bytes int) (found float64, ok bool) {
	drained := q.drained(now)
	q.empty = max(0, time.Duration((drained-q.length)*8e3/q.RateMbit))
	q.length = max(0, q.length-drained)
	q.last = max(q.last, now)
	found = q.length
	if q.Room > 0 && found+float64(bytes) > float64(q.Room) {
		return found, false
	}
	q.length += float64(bytes)
	return found, true
}

// take takes back a packet that was put in and then dropped.
func (q *VirtualQueue) take(bytes int) { q.length = max(0, q.length-float64(bytes)) }
