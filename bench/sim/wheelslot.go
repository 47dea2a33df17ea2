package sim

import (
	"iter"
	"math/bits"
)

// list yields the events of a slot in use, in the order in which they came.
func (s *slot) list() iter.Seq[[]event] {
	return func(yield func([]event) bool) {
		c := s.first
		for ; c != s.last; c = c.next {
			if !yield(c.events[:]) {
				return
			}
		}
		yield(c.events[:s.n])
	}
}

// empty takes all events from a slot in use.
func (w *wheel) empty(t *turn, i int) {
	s := &t.slots[i]
	t.used[i>>6] &^= 1 << (i & 63)
	s.last.next = w.free
	w.free = s.first
	s.n = chunkEvents
}

// each calls f for all events to come. It may change them, but not their times.
func (w *wheel) each(f func(*event)) {
	all := func(list []event) {
		for i := range list {
			f(&list[i])
		}
	}
	all(w.batch[w.at:])
	all(w.beyond)
	for _, t := range []*turn{&w.near, &w.far} {
		for i := t.next(0); i >= 0; i = t.next(i + 1) {
			for c := range t.slots[i].list() {
				all(c)
			}
		}
	}
}

// sort makes the events of a slot the batch, ordered by time, stably: by counting the high
// bits within the slot, as many as there are events, then by insertion, which is left with
// little to do.
func (w *wheel) sort(s *slot) {
	n := int(s.full + s.n)
	if cap(w.batch) < n {
		w.batch = make([]event, 2*n)
	}
	w.batch = w.batch[:n]
	if n > 32 {
		w.spread(s)
	} else {
		w.batch = w.batch[:0]
		for c := range s.list() {
			w.batch = append(w.batch, c...)
		}
	}
	b := w.batch
	for i := 1; i < len(b); i++ {
		if b[i-1].at > b[i].at {
			e := b[i]
			j := i
			for ; j > 0 && b[j-1].at > e.at; j-- {
				b[j] = b[j-1]
			}
			b[j] = e
		}
	}
}

// spread copies the events of a slot into the batch, ordered by their times' high bits.
func (w *wheel) spread(s *slot) {
	b := min(uint(bits.Len(uint(len(w.batch)))), w.shift, 12)
	shift, mask := w.shift-b, int64(1)<<b-1
	if len(w.counts) < 1<<b {
		w.counts = make([]uint32, 1<<b)
	}
	counts := w.counts[:1<<b]
	clear(counts)
	for c := range s.list() {
		for i := range c {
			counts[c[i].at>>shift&mask]++
		}
	}
	sum := uint32(0)
	for i, c := range counts {
		counts[i] = sum
		sum += c
	}
	out := w.batch
	for c := range s.list() {
		for i := range c {
			at := &counts[c[i].at>>shift&mask]
			out[*at] = c[i]
			*at++
		}
	}
}
