package fluid

// item is something to be done in the order of keys, and among equal ones of
// ids.
type item struct {
	key     float64
	id      int32
	version uint32
}

func (a item) before(b item) bool { return a.key < b.key || a.key == b.key && a.id < b.id }

// heap is a binary one: container/heap would allocate, and timerq.Queue is for times and
// for what comes in first. Equal keys are in the order of ids here, on which results
// depend, and what is out of date is dropped all at once (keep).
type heap struct{ items []item }

func (h *heap) len() int { return len(h.items) }
func (h *heap) clear()   { h.items = h.items[:0] }

func (h *heap) push(x item) {
	h.items = append(h.items, x)
	i := len(h.items) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !x.before(h.items[up]) {
			break
		}
		h.items[i] = h.items[up]
		i = up
	}
	h.items[i] = x
}

func (h *heap) pop() item {
	first := h.items[0]
	last := len(h.items) - 1
	x := h.items[last]
	h.items = h.items[:last]
	if last > 0 {
		h.sink(0, x)
	}
	return first
}

// sink puts x where i is, or below.
func (h *heap) sink(i int, x item) {
	for {
		down := 2*i + 1
		if down >= len(h.items) {
			break
		}
		if down+1 < len(h.items) && h.items[down+1].before(h.items[down]) {
			down++
		}
		if !h.items[down].before(x) {
			break
		}
		h.items[i] = h.items[down]
		i = down
	}
	h.items[i] = x
}

// keep leaves only items of which ok is true.
func (h *heap) keep(ok func(item) bool) {
	kept := h.items[:0]
	for _, x := range h.items {
		if ok(x) {
			kept = append(kept, x)
		}
	}
	h.items = kept
	for i := len(kept)/2 - 1; i >= 0; i-- {
		h.sink(i, kept[i])
	}
}
