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
	// Len returns how many numbers there are. They begin with 0.
	Len() int
	// Find returns the number of a flow, which it keeps while packets are diverted.
	Find(*flowcell.FiveTuple) (number int, ok bool)
	// Next returns the sequence number at which a flow went on when it was diverted.
	Next(number int) uint32
	// Tracks returns the tracks of the datagrams of a flow, a bit each; 0: not known.
	Tracks(number int) uint16
	// Diverted returns how many packets of a flow were diverted, up to now.
	Diverted(number int) uint64
	// Returned returns what Return was told last.
	Returned(number int) uint64
	// Parts returns into how many parts the flows are divided for Limit.
	Parts() int
	// Limit has only flows of so many parts be diverted from now on, from one part on, the first
	// behind the last. It begins with all.
	Limit(from, parts int) error
	// Return tells that so many of the diverted packets were delivered, and that the flow
	// goes on at next. If these are all, the flow is straight again from here on.
	Return(number int, next uint32, packets uint64)
}

// handover gives flows back to their divider as soon as they have no hole. It belongs to an
// ingress, and is used under its lock. It is pure.
type handover struct {
	divider Divider
	order   order // of TCP
	numbers order // of datagrams
	flows   map[int]*diverted
	touched []*diverted
	swept   time.Duration
	expired bool // since then
	scanned int  // numbers, in the round under way
	sheds   shedding
	stats   HandoverStats
}

// order is a resequencer.Buffer of any kind of packets.
type order interface {
	Resume(flow *flowcell.FiveTuple, next uint32, now time.Duration)
	Place(flow *flowcell.FiveTuple) (next uint32, waits, ok bool)
}

func (h *handover) orderOf(flow *flowcell.FiveTuple) order {
	if flow.Proto == flowcell.ProtoUDP {
		return h.numbers
	}
	return h.order
}

// HandoverStats counts what an ingress with a Divider does.
type HandoverStats struct {
	Diverted uint64 `json:"diverted"` // packets that have arrived behind a hole
	Returned uint64 `json:"returned"` // how often a flow was straight again
	Missed   uint64 `json:"missed"`   // packets that were diverted and have not arrived
	Flows    int    `json:"flows"`    // that are diverted now
	// SharePercent is the share of the parts, into which flows are divided by a hash, whose order
	// is restored. The daemon has no time for the others.
	SharePercent float64 `json:"share_percent"`
	Shed         uint64  `json:"shed"` // how often that part became smaller
}

// diverted is a flow that is not straight.
type diverted struct {
	number  int
	flow    flowcell.FiveTuple
	next    uint32 // where the flow went on at last, as the resequencer knew it
	packets uint64 // of those diverted, that have arrived or are given up
	held    bool   // has been taken from the divider and not been returned since
	touched bool   // since settle
	tracks  tracks // of datagrams

	counted uint64 // those diverted when this was settled last, before the reader read again

	// Packets that have not come though the reader's socket was empty: the fewest since a
	// time.
	fewest  uint64
	lagging bool
	since   time.Duration
}

// overdue is how long a packet takes at most from where it was counted to the reader's
// socket. After that it is lost: the socket was full, or the packet was no good.
const overdue = 50 * time.Millisecond

func newHandover[P any](d Divider, tcp, datagrams *resequencer.Buffer[P]) *handover {
	return &handover{divider: d, order: tcp, numbers: datagrams, flows: make(map[int]*diverted), sheds: newShedding(d.Parts()),
		stats: HandoverStats{SharePercent: 100}}
}

// shed has the divider keep the flows for which the reader has no time. It is called after each
// read; empty is that of shedding.read.
func (h *handover) shed(empty bool, now time.Duration) {
	was := h.sheds.parts
	if !h.sheds.read(empty, now) || h.divider.Limit(h.sheds.from, h.sheds.parts) != nil { // closed: nothing is diverted any more
		return
	}
	if h.sheds.parts < was {
		h.stats.Shed++
	}
	h.stats.SharePercent = 100 * float64(h.sheds.parts) / float64(h.sheds.all)
}

// arrived takes note of a diverted packet, before the resequencer gets it. It returns the flow;
// nil if that is not diverted.
func (h *handover) arrived(flow *flowcell.FiveTuple, now time.Duration) *diverted {
	number, ok := h.divider.Find(flow)
	if !ok {
		return nil // the resequencer manages alone
	}
	h.stats.Diverted++
	d := h.flows[number]
	if d == nil && h.divider.Diverted(number) == h.divider.Returned(number) {
		return nil // given up before it came; the flow is straight
	}
	if d == nil {
		d = h.take(number)
	}
	d.flow = *flow
	if !d.held {
		d.held, d.next = true, h.divider.Next(number)
		h.orderOf(flow).Resume(flow, d.next, now)
	}
	d.packets++
	h.touch(d)
	return d
}

// arrivedDatagram is arrived for a datagram, to which it gives its number in place of a TCP
// segment's. Without one a datagram does not wait. rest says that it was diverted together
// with the one before it, as a super-packet.
func (h *handover) arrivedDatagram(pkt *flowcell.Packet, rest bool, now time.Duration) {
	var d *diverted
	if !rest {
		d = h.arrived(&pkt.Flow, now)
	} else if number, ok := h.divider.Find(&pkt.Flow); ok {
		d = h.flows[number]
	}
	if d == nil {
		return
	}
	near := d.next
	if next, _, ok := h.numbers.Place(&pkt.Flow); ok {
		near = next
	}
	place := flowcell.Place(pkt.ID)
	pkt.Seq, pkt.Payload, pkt.ID = place.After(near), 1, 0
	d.tracks.came(place, pkt.Seq)
}

// passed calls lost for each flow of which datagrams have come since the last settle, if all
// its tracks have come to a number: what is missing below is lost.
func (h *handover) passed(lost func(flow *flowcell.FiveTuple, upTo uint32)) {
	for _, d := range h.touched {
		if d.flow.Proto != flowcell.ProtoUDP {
			continue
		}
		if upTo, ok := d.tracks.passed(h.divider.Tracks(d.number)); ok {
			lost(&d.flow, upTo)
		}
	}
}

func (h *handover) take(number int) *diverted {
	d := &diverted{number: number, packets: h.divider.Returned(number)}
	h.flows[number] = d
	return d
}

func (h *handover) touch(d *diverted) {
	if !d.touched {
		d.touched = true
		h.touched = append(h.touched, d)
	}
}

// settle returns what has no hole any more. All that the resequencer has let go must have
// been delivered. expired says that it has let go something by time alone, drained that
// since the last settle the reader has emptied its socket. settle must be called at least
// each overdue.
func (h *handover) settle(expired, drained bool, now time.Duration) {
	h.expired = h.expired || expired
	h.sweep(now)
	for _, d := range h.touched {
		d.touched = false
		h.giveBack(d, drained, now)
	}
	h.touched = h.touched[:0]
	h.stats.Flows = len(h.flows)
}

const (
	// sweepEvery is how often all flows are looked at, at most; with many flows, less often,
	// so that it takes a small part of the time.
	sweepEvery = time.Millisecond
	sweepTime  = 4 * time.Microsecond // for each flow
	// scan is how many numbers a sweep looks at.
	scan = 1024
)

// sweep has all flows looked at from time to time. It also finds flows of which no diverted
// packet has ever come, some numbers at a time.
func (h *handover) sweep(now time.Duration) {
	pause := sweepEvery
	if !h.expired {
		pause = overdue / 4
	}
	if now-h.swept < max(pause, time.Duration(len(h.flows))*sweepTime) {
		return
	}
	h.swept, h.expired = now, false
	n := h.divider.Len()
	for range min(scan, n) {
		h.scanned = (h.scanned + 1) % n
		if h.flows[h.scanned] == nil && h.divider.Diverted(h.scanned) != h.divider.Returned(h.scanned) {
			h.take(h.scanned)
		}
	}
	for _, d := range h.flows {
		h.touch(d)
	}
}

func (h *handover) giveBack(d *diverted, drained bool, now time.Duration) {
	next, waits, ok := h.orderOf(&d.flow).Place(&d.flow)
	switch {
	case waits:
		d.lagging = false
		return
	case !d.held:
		d.next = h.divider.Next(d.number) // nothing has moved it
	case ok:
		d.next = next
	}
	h.giveUp(d, drained, now)
	d.held = false
	all := h.divider.Diverted(d.number) == d.packets // later the place may be another flow's
	h.divider.Return(d.number, d.next, d.packets)
	if all {
		h.stats.Returned++
		delete(h.flows, d.number)
	}
}

// giveUp counts as arrived what has not come for too long.
func (h *handover) giveUp(d *diverted, drained bool, now time.Duration) {
	before := d.counted
	d.counted = h.divider.Diverted(d.number)
	d.packets = min(d.packets, d.counted) // else one has come that was given up
	switch {
	case before <= d.packets:
		d.lagging = false
	case !drained: // it may wait in the socket
	case !d.lagging:
		d.lagging, d.fewest, d.since = true, before-d.packets, now
	default:
		if d.fewest = min(d.fewest, before-d.packets); now-d.since >= overdue {
			h.stats.Missed += d.fewest
			d.packets += d.fewest
			d.lagging = false
		}
	}
}
