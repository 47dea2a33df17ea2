package simnet

import "time"

// event is the arrival of a packet's last bit at the far end of a port's wire.
type event struct {
	at     time.Duration
	seq    uint64
	port   int32
	packet *packet
}

func (e *event) before(f *event) bool {
	return e.at < f.at || e.at == f.at && e.seq < f.seq
}

// eventHeap is a binary heap of values, ties broken by the order of insertion.
type eventHeap struct {
	list []event
	seq  uint64
}

func (h *eventHeap) push(at time.Duration, port int32, p *packet) {
	e := event{at, h.seq, port, p}
	h.seq++
	h.list = append(h.list, e)
	i := len(h.list) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !e.before(&h.list[up]) {
			break
		}
		h.list[i] = h.list[up]
		i = up
	}
	h.list[i] = e
}

// pop removes the earliest event of a heap that is not empty.
func (h *eventHeap) pop() event {
	first := h.list[0]
	last := len(h.list) - 1
	e := h.list[last]
	h.list[last] = event{} // lets go of the packet
	h.list = h.list[:last]
	if last == 0 {
		return first
	}
	i := 0
	for {
		down := 2*i + 1
		if down >= last {
			break
		}
		if down+1 < last && h.list[down+1].before(&h.list[down]) {
			down++
		}
		if !h.list[down].before(&e) {
			break
		}
		h.list[i] = h.list[down]
		i = down
	}
	h.list[i] = e
	return first
}
