package sim

import (
	"math/bits"
	"unsafe"
)

const (
	// Few slots are near, so that pushing finds them in the cache, and yet so many that most
	// events of packets on links are.
	nearBits  = 10
	nearSlots = 1 << nearBits
	farBits   = 12
	farSlots  = 1 << farBits
	// chunkEvents makes a chunk 1 KB long.
	chunkEvents = 31
)

// wheel is a queue of events in the order of their time: a timing wheel whose slots are
// lists of chunks, filled unsorted and sorted, stably, when their time comes. Events
// beyond the first wheel's turn wait in a second wheel whose slots are the turns of the
// first, and later events in a list. An event moves down when its turn comes, before any
// other can be pushed there, so the order of pushing is kept.
//
// timerq.Queue, a heap, also keeps the order, but moves every event log n times through
// memory: BenchmarkWheel measures both.
type wheel struct {
	shift  uint  // a slot is 1<<shift ps long
	tick   int64 // the slot under way, counted from 0 in all
	batch  []event
	at     int // what of batch comes next
	near   turn
	far    turn
	beyond []event

	free   *chunk // those not in use, in a list
	chunks int

	spare  []event  // of turn
	counts []uint32 // of sort
}

type chunk struct {
	events [chunkEvents]event
	next   *chunk
	_      [24]byte
}

// turn is all slots of a wheel and which of them are not empty.
type turn struct {
	slots []slot
	used  []uint64
}

type slot struct {
	first, last *chunk
	full        int32 // events in all but the last
	n           int32 // events in the last; of an empty slot chunkEvents, so that only full ones need more
}

// newWheel returns an empty wheel with slots of at most so many picoseconds. It is
// fastest if events are pushed that far ahead at least.
func newWheel(slotTime int64) *wheel {
	w := &wheel{
		shift: uint(min(max(bits.Len64(uint64(slotTime))-1, 14), 19)),
		tick:  -1,
	}
	w.near, w.far = newTurn(nearSlots), newTurn(farSlots)
	return w
}

func newTurn(slots int) turn {
	t := turn{slots: make([]slot, slots), used: make([]uint64, slots/64)}
	for i := range t.slots {
		t.slots[i].n = chunkEvents
	}
	return t
}

// push adds an event, at the time of the latest popped one or later.
func (w *wheel) push(e event) { *w.place(e.at) = e }

// place makes room for an event that push would add. Its caller sets all of its fields, each by
// itself: an event made on the stack and copied costs a store-forwarding stall.
func (w *wheel) place(at int64) *event {
	t := at >> w.shift
	if t>>nearBits == w.tick>>nearBits && t > w.tick {
		if s := &w.near.slots[t&(nearSlots-1)]; s.n < chunkEvents {
			s.n++
			return &s.last.events[s.n-1]
		}
	}
	return w.placeElsewhere(t, at)
}

func (w *wheel) placeElsewhere(t, at int64) *event {
	switch {
	case t>>nearBits == w.tick>>nearBits && t > w.tick:
		return w.add(&w.near, t)
	case t <= w.tick:
		return w.insert(at)
	case t>>(nearBits+farBits) == w.tick>>(nearBits+farBits):
		return w.add(&w.far, t>>nearBits)
	}
	w.beyond = append(w.beyond, event{})
	return &w.beyond[len(w.beyond)-1]
}

// insert makes room in the batch under way.
func (w *wheel) insert(at int64) *event {
	w.batch = append(w.batch, event{})
	i := len(w.batch) - 1
	for ; i > w.at && w.batch[i-1].at > at; i-- {
		w.batch[i] = w.batch[i-1]
	}
	return &w.batch[i]
}

func (w *wheel) add(t *turn, number int64) *event {
	s := &t.slots[number&(int64(len(t.slots))-1)]
	if s.n == chunkEvents {
		w.addChunk(t, s, number&(int64(len(t.slots))-1))
	}
	s.n++
	return &s.last.events[s.n-1]
}

func (w *wheel) addChunk(t *turn, s *slot, i int64) {
	c := w.newChunk()
	if bit := uint64(1) << (i & 63); t.used[i>>6]&bit == 0 {
		t.used[i>>6] |= bit
		s.first, s.full = c, 0
	} else {
		s.last.next = c
		s.full += chunkEvents
	}
	s.last, s.n = c, 0
}

func (w *wheel) newChunk() *chunk {
	if w.free == nil {
		w.moreChunks()
	}
	c := w.free
	w.free = c.next
	return c
}

func (w *wheel) moreChunks() {
	more := new([32]chunk)
	for i := range more {
		more[i].next = w.free
		w.free = &more[i]
	}
	if w.chunks += len(more); w.chunks*int(unsafe.Sizeof(more[0])) >= large {
		adviseHugePages(unsafe.Pointer(more))
	}
}

// next returns the first slot in use from i on, -1 if there is none.
func (t *turn) next(i int) int {
	for ; i < len(t.slots); i = i&^63 + 64 {
		if u := t.used[i>>6] >> (i & 63); u != 0 {
			return i + bits.TrailingZeros64(u)
		}
	}
	return -1
}

// pop returns the next event, and false if there is none.
func (w *wheel) pop() (event, bool) {
	if w.at == len(w.batch) && !w.advance() {
		return event{}, false
	}
	e := w.batch[w.at]
	w.at++
	return e, true
}

// advance makes a batch of the next slot that is in use.
func (w *wheel) advance() bool {
	from := int(w.tick&(nearSlots-1)) + 1
	i := -1
	if from < nearSlots {
		i = w.near.next(from)
	}
	if i < 0 {
		if !w.turn() {
			return false
		}
		i = w.near.next(0)
	}
	w.tick = w.tick&^(nearSlots-1) | int64(i)
	w.at = 0
	w.sort(&w.near.slots[i])
	w.empty(&w.near, i)
	return true
}

// turn begins the next turn of the near wheel that has events.
func (w *wheel) turn() bool {
	i := -1
	if from := int(w.tick>>nearBits&(farSlots-1)) + 1; from < farSlots {
		i = w.far.next(from)
	}
	if i < 0 {
		if !w.farTurn() {
			return false
		}
		i = w.far.next(0)
	}
	w.tick = (w.tick>>nearBits&^(farSlots-1) | int64(i)) << nearBits
	w.spare = w.spare[:0]
	for c := range w.far.slots[i].list() {
		w.spare = append(w.spare, c...)
	}
	w.empty(&w.far, i)
	for _, e := range w.spare {
		*w.add(&w.near, e.at>>w.shift) = e
	}
	return true
}

// farTurn begins the next turn of the far wheel that has events.
func (w *wheel) farTurn() bool {
	if len(w.beyond) == 0 {
		return false
	}
	shift := w.shift + nearBits + farBits
	first := w.beyond[0].at >> shift
	for _, e := range w.beyond {
		first = min(first, e.at>>shift)
	}
	w.tick = first << (nearBits + farBits)
	rest := w.beyond[:0]
	for _, e := range w.beyond {
		if e.at>>shift == first {
			*w.add(&w.far, e.at>>(w.shift+nearBits)) = e
		} else {
			rest = append(rest, e)
		}
	}
	w.beyond = rest
	return true
}
