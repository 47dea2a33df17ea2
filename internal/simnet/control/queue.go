package control

import (
	"time"

	"weft/topology"
)

// event is a message that arrives at a port, or, with no packet, the time at
// which a node is due.
type event struct {
	at     time.Duration
	seq    uint64 // in the order of insertion, which breaks ties
	node   topology.NodeID
	port   int
	life   int // of the node: what is for an earlier one is void
	packet []byte
}

func (e *event) before(f *event) bool {
	return e.at < f.at || e.at == f.at && e.seq < f.seq
}

// queue is a binary heap of events.
type queue struct {
	list []event
	seq  uint64
}

func (q *queue) push(e event) {
	e.seq = q.seq
	q.seq++
	q.list = append(q.list, e)
	i := len(q.list) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !e.before(&q.list[up]) {
			break
		}
		q.list[i] = q.list[up]
		i = up
	}
	q.list[i] = e
}

// pop removes the earliest event of a queue that is not empty.
func (q *queue) pop() event {
	first := q.list[0]
	last := len(q.list) - 1
	e := q.list[last]
	q.list[last] = event{}
	q.list = q.list[:last]
	i := 0
	for {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && q.list[child+1].before(&q.list[child]) {
			child++
		}
		if !q.list[child].before(&e) {
			break
		}
		q.list[i] = q.list[child]
		i = child
	}
	if last > 0 {
		q.list[i] = e
	}
	return first
}
