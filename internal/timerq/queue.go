// Package timerq is a queue of things in the order of the times at which they are due:
// the events of a simulation, the timers of a table.
//
// It is a 4-ary heap of values. Of things due at the same time the one that was put in
// first comes first, so that a simulation is the same every time. What is in the queue
// may be moved and taken out by its place, if its owner keeps the place that Moved
// tells. All that takes O(log n), and memory only where the queue grows.
//
// The package is pure: it owns no timer and no clock. A Queue is not safe for
// concurrent use.
package timerq

import (
	"math"
	"math/bits"
	"time"
)

// Never is when nothing is due.
const Never = time.Duration(math.MaxInt64)

// Nowhere is the place of what is not in a queue.
const Nowhere = int32(-1)

// Queue is a queue of Ts. The zero value is empty, for things that are not moved.
type Queue[T any] struct {
	// Moved, if not nil, is told of every change of a thing's place: a number that Due,
	// Set and Remove take, or Nowhere when it leaves the queue. It must not call the
	// Queue. It is not to be changed while the queue holds something.
	Moved func(what T, place int32)

	heap   []entry[T]
	number uint64 // of the latest put in
}

type entry[T any] struct {
	due    time.Duration
	number uint64
	what   T
}

// before is 1 if an entry comes before another, else 0. It is a subtraction of numbers of
// 128 bits: a heap's comparisons are as good as random, so branches would be mispredicted.
func (e *entry[T]) before(o *entry[T]) int {
	const sign = 1 << 63
	_, borrow := bits.Sub64(e.number, o.number, 0)
	_, borrow = bits.Sub64(uint64(e.due)^sign, uint64(o.due)^sign, borrow)
	return int(borrow)
}

// Len is how many things are in the queue.
func (q *Queue[T]) Len() int { return len(q.heap) }

// Next is when the first is due, Never if there is none.
func (q *Queue[T]) Next() time.Duration {
	if len(q.heap) == 0 {
		return Never
	}
	return q.heap[0].due
}

// First returns what is due first, of a queue that is not empty.
func (q *Queue[T]) First() T { return q.heap[0].what }

// Due is when what is at a place is due.
func (q *Queue[T]) Due(place int32) time.Duration { return q.heap[place].due }

// Add puts something in.
func (q *Queue[T]) Add(due time.Duration, what T) {
	q.number++
	q.heap = append(q.heap, entry[T]{})
	q.up(len(q.heap)-1, &entry[T]{due, q.number, what})
}

// Set puts something in, or moves it if place is where it is already. Either way it
// comes after all else that is due at that time.
func (q *Queue[T]) Set(what T, place int32, due time.Duration) {
	if place == Nowhere {
		q.Add(due, what)
		return
	}
	q.number++
	q.settle(int(place), entry[T]{due, q.number, what})
}

// Pop takes out and returns what is due first, of a queue that is not empty.
func (q *Queue[T]) Pop() T {
	what := q.heap[0].what
	q.Remove(0)
	return what
}

// Remove takes out what is at a place; of Nowhere there is nothing to take out.
func (q *Queue[T]) Remove(place int32) {
	if place == Nowhere {
		return
	}
	if q.Moved != nil {
		q.Moved(q.heap[place].what, Nowhere)
	}
	last := len(q.heap) - 1
	moved := q.heap[last]
	q.heap[last] = entry[T]{} // lets go of what it points to
	q.heap = q.heap[:last]
	if int(place) < last {
		q.settle(int(place), moved)
	}
}

// Clear empties the queue and tells nobody. Its memory stays for what comes next.
func (q *Queue[T]) Clear() {
	clear(q.heap)
	q.heap = q.heap[:0]
}

// settle puts an entry where i is, which is free, or above or below. It is not compared on
// the way down: most come from the end, and belong there.
func (q *Queue[T]) settle(i int, e entry[T]) {
	h := q.heap
	for {
		c := 4*i + 1
		if c+3 >= len(h) {
			break
		}
		first := c + h[c+1].before(&h[c])
		other := c + 2 + h[c+3].before(&h[c+2])
		first += (other - first) * h[other].before(&h[first])
		q.put(i, &h[first])
		i = first
	}
	if c := 4*i + 1; c < len(h) { // the last ones, less than four
		first := c
		for c++; c < len(h); c++ {
			first += (c - first) * h[c].before(&h[first])
		}
		q.put(i, &h[first])
		i = first
	}
	q.up(i, &e)
}

// up puts an entry where i is, which is free, or above.
func (q *Queue[T]) up(i int, e *entry[T]) {
	h := q.heap
	for i > 0 {
		parent := (i - 1) / 4
		if e.before(&h[parent]) == 0 {
			break
		}
		q.put(i, &h[parent])
		i = parent
	}
	q.put(i, e)
}

func (q *Queue[T]) put(i int, e *entry[T]) {
	q.heap[i] = *e
	if q.Moved != nil {
		q.Moved(e.what, int32(i))
	}
}
