package dataplane

import (
	"time"

	"weft/flowcell"
	"weft/resequencer"
)

// Divider is what sends packets past an ingress while they are in order, and diverts those
// of flows that have a hole to it (hostprog.FlowTable). Flows have numbers. Both sides tell
// how far they are by counts, and only the side that has a flow writes where it goes on.
type Divider interface {
	// Find returns the number of a flow, which it keeps while packets are diverted.
	Find(*flowcell.FiveTuple) (number int, ok bool)
	// Next returns the sequence number at which a flow went on when it was diverted.
	Next(number int) uint32
	// Diverted returns how many packets of a flow were diverted, up to now.
	Diverted(number int) uint64
	// Returned returns what Return was told last.
	Returned(number int) uint64
	// Return tells that so many of the diverted packets were delivered, and that the flow
	// goes on at next. If these are all, the flow is straight again from here on.
	Return(number int, next uint32, packets uint64)
}

// handover gives flows back to their divider as soon as they have no hole. It belongs to an
// ingress, and is used under its lock. It is pure.
type handover struct {
	divider Divider
	order   interface {
		Resume(flow *flowcell.FiveTuple, next uint32, now time.Duration)
		Place(flow *flowcell.FiveTuple) (next uint32, waits, ok bool)
	}
	flows   map[int]*diverted
	touched []*diverted
	swept   time.Duration
	stats   HandoverStats
}

// HandoverStats counts what an ingress with a Divider does.
type HandoverStats struct {
	Diverted uint64 `json:"diverted"` // packets that have arrived behind a hole
	Returned uint64 `json:"returned"` // how often a flow was straight again
	Missed   uint64 `json:"missed"`   // packets that were diverted and have not arrived
	Flows    int    `json:"flows"`    // that are diverted now
}

// diverted is a flow that is not straight.
type diverted struct {
	number  int
	flow    flowcell.FiveTuple
	packets uint64 // of those diverted, that have arrived or are given up
	held    bool   // has been taken from the divider and not been returned since
	touched bool   // since settle

	// While packets are on their way, or lost: the fewest since a time.
	fewest  uint64
	lagging bool
	since   time.Duration
}

// overdue is how long a packet takes at most from where it was counted to the ingress.
// After that it is lost: the reader's socket was full, or it was no good.
const overdue = 50 * time.Millisecond

func newHandover[P any](d Divider, b *resequencer.Buffer[P]) *handover {
	return &handover{divider: d, order: b, flows: make(map[int]*diverted)}
}

// arrived takes note of a diverted packet, before the resequencer gets it.
func (h *handover) arrived(flow *flowcell.FiveTuple, now time.Duration) {
	number, ok := h.divider.Find(flow)
	if !ok {
		return // the resequencer manages alone
	}
	h.stats.Diverted++
	d := h.flows[number]
	if d == nil && h.divider.Diverted(number) == h.divider.Returned(number) {
		return // given up before it came; the flow is straight
	}
	if d == nil {
		d = &diverted{number: number, flow: *flow, packets: h.divider.Returned(number)}
		h.flows[number] = d
	}
	if !d.held {
		d.held = true
		h.order.Resume(flow, h.divider.Next(number), now)
	}
	d.packets++
	h.touch(d)
}

func (h *handover) touch(d *diverted) {
	if !d.touched {
		d.touched = true
		h.touched = append(h.touched, d)
	}
}

// settle returns what has no hole any more. All that the resequencer has let go must have
// been delivered. expired says that it has let go something by time alone. It must be
// called at least each overdue.
func (h *handover) settle(expired bool, now time.Duration) {
	if expired || now-h.swept >= overdue/4 {
		h.swept = now
		for _, d := range h.flows {
			h.touch(d)
		}
	}
	for _, d := range h.touched {
		d.touched = false
		h.giveBack(d, now)
	}
	h.touched = h.touched[:0]
	h.stats.Flows = len(h.flows)
}

func (h *handover) giveBack(d *diverted, now time.Duration) {
	next, waits, ok := h.order.Place(&d.flow)
	if waits {
		d.lagging = false
		return
	}
	if !d.held || !ok {
		next = h.divider.Next(d.number) // nothing has moved it
	}
	h.giveUp(d, now)
	d.held = false
	h.divider.Return(d.number, next, d.packets)
	if h.divider.Diverted(d.number) == d.packets {
		h.stats.Returned++
		delete(h.flows, d.number)
	}
}

// giveUp counts as arrived what has not come for too long.
func (h *handover) giveUp(d *diverted, now time.Duration) {
	counted := h.divider.Diverted(d.number)
	d.packets = min(d.packets, counted) // else one has come that was given up
	lag := counted - d.packets
	switch {
	case lag == 0:
		d.lagging = false
	case !d.lagging:
		d.lagging, d.fewest, d.since = true, lag, now
	default:
		if d.fewest = min(d.fewest, lag); now-d.since >= overdue {
			h.stats.Missed += d.fewest
			d.packets += d.fewest
			d.lagging = false
		}
	}
}
