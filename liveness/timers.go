package liveness

import (
	"math"
	"time"
)

// never is when nothing is due.
const never = time.Duration(math.MaxInt64)

// timers is a heap of what is due at some time. move tells the owner where in
// the heap each thing is.
type timers[T any] struct {
	heap []timer[T]
	move func(id T, place int32)
}

type timer[T any] struct {
	due time.Duration
	id  T
}

const nowhere = -1 // the place of what is not in the heap

// next returns when the first is due, never if there is none.
func (h *timers[T]) next() time.Duration {
	if len(h.heap) == 0 {
		return never
	}
	return h.heap[0].due
}

// set makes id due; place is where it is, or nowhere.
func (h *timers[T]) set(id T, place int32, due time.Duration) {
	if place == nowhere {
		h.heap = append(h.heap, timer[T]{due, id})
		h.up(int32(len(h.heap) - 1))
		return
	}
	h.heap[place].due = due
	h.up(h.down(place))
}

// remove takes what is at place out; nowhere is allowed.
func (h *timers[T]) remove(place int32) {
	if place == nowhere {
		return
	}
	last := int32(len(h.heap) - 1)
	h.move(h.heap[place].id, nowhere)
	moved := h.heap[last]
	h.heap = h.heap[:last]
	if place < last {
		h.heap[place] = moved
		h.up(h.down(place))
	}
}

func (h *timers[T]) up(i int32) {
	t := h.heap[i]
	for i > 0 {
		parent := (i - 1) / 4
		if h.heap[parent].due <= t.due {
			break
		}
		h.put(i, h.heap[parent])
		i = parent
	}
	h.put(i, t)
}

func (h *timers[T]) down(i int32) int32 {
	t := h.heap[i]
	n := int32(len(h.heap))
	for {
		first := i
		due := t.due
		for c := 4*i + 1; c <= 4*i+4 && c < n; c++ {
			if h.heap[c].due < due {
				first, due = c, h.heap[c].due
			}
		}
		if first == i {
			h.put(i, t)
			return i
		}
		h.put(i, h.heap[first])
		i = first
	}
}

func (h *timers[T]) put(i int32, t timer[T]) {
	h.heap[i] = t
	h.move(t.id, i)
}
