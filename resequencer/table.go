package resequencer

import "weft/flowcell"

// table finds flows by their five-tuple and knows which was used longest ago.
type table[P any] struct {
	flows map[flowcell.FiveTuple]*flow[P]
	used  ring[flow[P]]
	free  []*flow[P] // at most as many as were ever remembered at once
}

func (t *table[P]) init() {
	t.flows = make(map[flowcell.FiveTuple]*flow[P])
	t.used.init(nil)
}

// get returns a flow and makes it the latest used, or nil.
func (t *table[P]) get(key flowcell.FiveTuple) *flow[P] {
	latest := t.used.next.of
	if latest != nil && latest.key == key {
		return latest // packets come in bursts
	}
	f := t.flows[key]
	if f != nil {
		f.use.remove()
		f.use.insertAfter(&t.used)
	}
	return f
}

// add remembers a flow that get does not know.
func (t *table[P]) add(key flowcell.FiveTuple) *flow[P] {
	var f *flow[P]
	if n := len(t.free); n > 0 {
		f, t.free = t.free[n-1], t.free[:n-1]
	} else {
		f = new(flow[P])
		f.use.init(f)
		f.bySeq.init(nil)
	}
	f.key = key
	f.use.insertAfter(&t.used)
	t.flows[key] = f
	return f
}

// idlest returns the flow used longest ago, nil if there is none.
func (t *table[P]) idlest() *flow[P] { return t.used.prev.of }

// forget removes f, which holds nothing.
func (t *table[P]) forget(f *flow[P]) {
	delete(t.flows, f.key)
	f.use.remove()
	t.free = append(t.free, f)
}
