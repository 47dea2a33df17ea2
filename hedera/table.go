package hedera

import (
	"cmp"
	"container/heap"
	"net/netip"
	"slices"
	"time"

	"weft/flowcell"
	"weft/topology"
)

// entry is a reported flow.
type entry struct {
	Flow
	tuple flowcell.FiveTuple
	node  netip.Addr // that reports it
	rate  uint64     // bits/s
	last  time.Duration
	heap  int // its place in the table's
	own   int // its place in its host's
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
	order []*entry // those that have gone included
	gone  int
	hosts []hostFlows // by source
}

// hostFlows are the flows of a host.
type hostFlows struct {
	list []*entry
	rate uint64 // of all together
}

// mostOfHost bounds the flows of a host.
const mostOfHost = 256

func newTable(most, hosts int) *table {
	return &table{most: most, by: make(map[flowcell.FiveTuple]*entry), hosts: make([]hostFlows, hosts)}
}

func (t *table) get(tuple flowcell.FiveTuple) *entry { return t.by[tuple] }

// victim returns the flow that would make place for another one of a host, nil if there is
// place. A host that has its share of a full table makes place itself.
func (t *table) victim(host topology.NodeID) *entry {
	h := &t.hosts[host]
	switch full := len(t.by) >= t.most; {
	case len(h.list) >= mostOfHost || full && len(h.list) > 0 && len(h.list) >= t.most/len(t.hosts):
		return slices.MinFunc(h.list, func(a, b *entry) int { return cmp.Compare(a.rate, b.rate) })
	case full:
		return t.small[0]
	}
	return nil
}

func (t *table) add(e *entry) {
	t.by[e.tuple] = e
	t.order = append(t.order, e)
	heap.Push(&t.small, e)
	h := &t.hosts[e.Src]
	e.own = len(h.list)
	h.list = append(h.list, e)
	h.rate += e.rate
}

// resize notes another rate.
func (t *table) resize(e *entry, rate uint64) {
	t.hosts[e.Src].rate += rate - e.rate // modulo 2^64
	e.rate = rate
	heap.Fix(&t.small, e.heap)
}

func (t *table) remove(e *entry) {
	delete(t.by, e.tuple)
	heap.Remove(&t.small, e.heap)
	e.heap = -1
	h := &t.hosts[e.Src]
	last := len(h.list) - 1
	h.list[e.own] = h.list[last]
	h.list[e.own].own = e.own
	h.list[last] = nil
	h.list = h.list[:last]
	h.rate -= e.rate
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
