package hedera

import (
	"container/heap"
	"net/netip"
	"time"

	"weft/flowcell"
)

// entry is a reported flow.
type entry struct {
	Flow
	tuple flowcell.FiveTuple
	node  netip.Addr // that reports it
	rate  uint64     // bits/s
	last  time.Duration
	heap  int // its place in the table's
	told  bool
	path  int // that was told last, with told
	via   netip.Addr
}

// table has the largest flows that were reported, a bounded number. It yields them in the
// order in which they came, so that a Rule's choices depend on reports only.
type table struct {
	most  int
	by    map[flowcell.FiveTuple]*entry
	small bySize
	order []*entry // nil where one has gone
	gone  int
}

func newTable(most int) *table {
	return &table{most: most, by: make(map[flowcell.FiveTuple]*entry)}
}

func (t *table) get(tuple flowcell.FiveTuple) *entry { return t.by[tuple] }

// full reports whether a flow of a rate would find no place.
func (t *table) full(rate uint64) bool { return len(t.by) >= t.most && t.small[0].rate >= rate }

// smallest returns the flow that would make place for another one, nil if there is place.
func (t *table) smallest() *entry {
	if len(t.by) < t.most {
		return nil
	}
	return t.small[0]
}

func (t *table) add(e *entry) {
	t.by[e.tuple] = e
	t.order = append(t.order, e)
	heap.Push(&t.small, e)
}

// resize notes another rate.
func (t *table) resize(e *entry, rate uint64) {
	e.rate = rate
	heap.Fix(&t.small, e.heap)
}

func (t *table) remove(e *entry) {
	delete(t.by, e.tuple)
	heap.Remove(&t.small, e.heap)
	e.heap = -1
	if t.gone++; t.gone > len(t.order)/2 {
		list := t.order[:0]
		for _, x := range t.order {
			if x.heap >= 0 {
				list = append(list, x)
			}
		}
		clear(t.order[len(list):])
		t.order, t.gone = list, 0
	}
}

// all appends the flows in the order in which they came.
func (t *table) all(list []*entry) []*entry {
	for _, e := range t.order {
		if e.heap >= 0 {
			list = append(list, e)
		}
	}
	return list
}

// bySize is a heap, the smallest flow on top.
type bySize []*entry

func (h bySize) Len() int           { return len(h) }
func (h bySize) Less(i, j int) bool { return h[i].rate < h[j].rate }
func (h bySize) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heap, h[j].heap = i, j
}
func (h *bySize) Push(x any) {
	e := x.(*entry)
	e.heap = len(*h)
	*h = append(*h, e)
}
func (h *bySize) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return e
}
