package capture

import (
	"cmp"
	"container/heap"
	"time"
)

// Sorter puts records of several sources into the order of their times. A source may be late
// by up to Window; what comes later still passes, out of order. It keeps at most Most records,
// and MostBytes of their bytes, and lets the oldest go when there are more. It is not safe for
// concurrent use.
type Sorter struct {
	Window    time.Duration
	Most      int // 0: 65,536
	MostBytes int // 0: 256 MB

	waiting records
	bytes   int
	count   uint64
	early   uint64
}

// Add takes a record and hands to emit those that are due: older than Window before now.
func (s *Sorter) Add(r Record, emit func(*Record)) {
	s.count++
	heap.Push(&s.waiting, ordered{r, s.count})
	s.bytes += len(r.Bytes)
	most, mostBytes := cmp.Or(s.Most, 1<<16), cmp.Or(s.MostBytes, 256<<20)
	for len(s.waiting) > most || s.bytes > mostBytes {
		s.early++
		s.pop(emit)
	}
}

// Due hands to emit what is older than Window before now.
func (s *Sorter) Due(now time.Time, emit func(*Record)) {
	for len(s.waiting) > 0 && now.Sub(s.waiting[0].At) >= s.Window {
		s.pop(emit)
	}
}

// Flush hands to emit all that is left.
func (s *Sorter) Flush(emit func(*Record)) {
	for len(s.waiting) > 0 {
		s.pop(emit)
	}
}

// Early is how many records left before their time, for want of room.
func (s *Sorter) Early() uint64 { return s.early }

func (s *Sorter) pop(emit func(*Record)) {
	r := heap.Pop(&s.waiting).(ordered)
	s.bytes -= len(r.Bytes)
	emit(&r.Record)
}

// ordered is a record and which it is.
type ordered struct {
	Record
	number uint64
}

type records []ordered

func (r records) Len() int { return len(r) }
func (r records) Less(i, j int) bool {
	if d := r[i].At.Compare(r[j].At); d != 0 {
		return d < 0
	}
	return r[i].number < r[j].number
}
func (r records) Swap(i, j int) { r[i], r[j] = r[j], r[i] }
func (r *records) Push(x any)   { *r = append(*r, x.(ordered)) }
func (r *records) Pop() any {
	last := (*r)[len(*r)-1]
	(*r)[len(*r)-1] = ordered{}
	*r = (*r)[:len(*r)-1]
	return last
}
