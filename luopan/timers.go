package luopan

import (
	"math"
	"time"
)

// Never is what Next returns when nothing is due.
const Never = time.Duration(math.MaxInt64)

// nowhere is the place of what is not in the heap.
const nowhere = -1

// timers is a heap of slots by when they are due. place has each slot's index in the heap.
type timers struct {
	heap  []timer
	place []int32
}

type timer struct {
	due  time.Duration
	slot int32
}

// next returns when the first is due.
func (h *timers) next() time.Duration {
	if len(h.heap) == 0 {
		return Never
	}
	return h.heap[0].due
}

// set makes a slot due, in place of when it was.
func (h *timers) set(slot int32, due time.Duration) {
	i := h.place[slot]
	if i == nowhere {
		i = int32(len(h.heap))
		h.heap = append(h.heap, timer{})
	}
	h.heap[i] = timer{due, slot}
	h.up(h.down(i))
}

// remove takes a slot out, if it is there.
func (h *timers) remove(slot int32) {
	i := h.place[slot]
	if i == nowhere {
		return
	}
	h.place[slot] = nowhere
	last := int32(len(h.heap) - 1)
	moved := h.heap[last]
	h.heap = h.heap[:last]
	if i < last {
		h.heap[i] = moved
		h.up(h.down(i))
	}
}

func (h *timers) up(i int32) {
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

func (h *timers) down(i int32) int32 {
	t := h.heap[i]
	n := int32(len(h.heap))
	for {
		first, due := i, t.due
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

func (h *timers) put(i int32, t timer) {
	h.heap[i] = t
	h.place[t.slot] = i
}
