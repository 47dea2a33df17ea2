package liveness

import (
	"math/bits"
	"time"

	"weft/internal/timerq"
)

// awaited holds the probes in flight in a ring. A probe's token holds its place. An
// answer that comes too late still shows that the probe was not lost, until the ring
// reuses its place.
type awaited struct {
	ring   []await
	mask   uint64
	number uint64
	late   timerq.Queue[int32]
}

type await struct {
	token   uint64 // 0: nothing is awaited
	path    *path
	sent    time.Duration
	place   int32  // in awaited.late
	stalls  uint64 // that there had been
	missed  bool   // its time has passed
	settled bool   // and so has the time in which it may come home late
	sample  bool   // it counts in the path's history
	size    uint8  // of a full-size probe the place in Watcher.sizes, and 1; 0: a small one
	asData  bool   // of data's class
	control int32  // the probe sent beside it, in the ring; nowhere: none
	paired  uint64
}

// init sizes the ring for all probes that can be waited for at once.
func (a *awaited) init(c *Config) {
	n := uint64(max(c.Budget, 0)*2*maxTimeout.Seconds()) + 64
	a.ring = make([]await, 1<<bits.Len64(n))
	a.mask = uint64(len(a.ring) - 1)
	a.late.Moved = func(i, place int32) { a.ring[i].place = place }
	a.forget()
}

func (a *awaited) forget() {
	a.late.Clear()
	for i := range a.ring {
		a.ring[i] = await{place: nowhere, control: nowhere}
	}
}

// add awaits the answer to a probe until due. The low bits of the probe's token are its
// place in the ring, the others are random. ok is false if the next place holds a probe
// that may still be answered in time.
func (a *awaited) add(p *path, random uint64, now, due time.Duration) (i int32, ok bool) {
	i = int32(a.number & a.mask)
	e := &a.ring[i]
	if e.place != nowhere {
		return 0, false
	}
	a.number++
	*e = await{token: random&^a.mask | uint64(i), path: p, sent: now, place: nowhere, control: nowhere}
	if e.token == 0 {
		return 0, false // one in 2^64
	}
	a.late.Add(due, i)
	return i, true
}

// take returns the probe that was sent with a token, and forgets it; ok is false if there
// is none.
func (a *awaited) take(token uint64) (await, bool) {
	e := &a.ring[token&a.mask]
	if token == 0 || e.token != token {
		return await{}, false
	}
	was := *e
	a.late.Remove(e.place)
	*e = await{place: nowhere, control: nowhere}
	return was, true
}

// tokenOf returns the token of the probe at a place in the ring, 0 if there is
// none.
func (a *awaited) tokenOf(i int32) uint64 {
	if i == nowhere {
		return 0
	}
	return a.ring[i].token
}

// pair notes that a probe was sent beside another, which may have come home
// already.
func (a *awaited) pair(i int32, c control) {
	if c.token != 0 {
		a.ring[i].control, a.ring[i].paired = c.i, c.token
	}
}

// beside reports whether the probe that was sent beside one came home.
func (a *awaited) beside(e *await) bool {
	return e.control != nowhere && a.ring[e.control].token != e.paired
}
