package qcn

import (
	"net/netip"
	"time"
)

const (
	// MaxReactions bounds the reaction points of a host.
	MaxReactions = 1024
	// maxHeard bounds the messages that wait for Look.
	maxHeard = 256
)

// Flow is a TCP connection over IPv4, as its sender sees it.
type Flow struct {
	Local, Remote netip.AddrPort
}

// Message is what a congestion point says about a packet.
type Message struct {
	Flow  Flow
	Seq   uint32 // of the packet
	Level int    // |F_b|, 1 to MaxLevel
}

// Connection is how a connection is at the moment.
type Connection struct {
	Una, Next uint32  // its sequence numbers that are in flight: from Una up to, but not with, Next
	Sent      uint64  // bytes since it began
	Rate      float64 // at which it delivers, bytes a second; 0: not known
}

// carries reports whether a sequence number is in flight, or was acknowledged within the last
// window's worth of bytes or since it was una that was not: messages may be overtaken by
// acknowledgements.
func (c *Connection) carries(seq, una uint32) bool {
	window := c.Next - c.Una
	if window < 1<<30 && seq-(c.Una-window) < 2*window {
		return true
	}
	since := c.Next - una
	return since < 1<<30 && seq-una < since
}

// Stats counts messages, and reaction points that ended.
type Stats struct {
	Believed  uint64 `json:"believed"`  // messages that have lowered a rate
	Stale     uint64 `json:"stale"`     // that are about nothing that the connection has in flight
	Unknown   uint64 `json:"unknown"`   // about no connection of this host
	Overflow  uint64 `json:"overflow"`  // that came while too many waited
	Recovered uint64 `json:"recovered"` // flows that are not limited any more
	Ended     uint64 `json:"ended"`     // limited flows whose connections have ended
	Evicted   uint64 `json:"evicted"`   // limited flows that had to make room for others
}

// Reactions are the reaction points of a host. Each round of its owner is: Flows, find out how
// these connections are, Look, give them their rates.
type Reactions struct {
	config Config
	points map[Flow]*point
	heard  []Message
	stats  Stats
}

// point is a flow's reaction point.
type point struct {
	Reaction
	sent  uint64        // Connection.Sent as of the last round
	una   uint32        // Connection.Una as of the round before
	now   uint32        // and as of the last one
	heard time.Duration // the last message
}

// NewReactions returns reaction points of a host, none at first. It fails if the
// configuration is wrong.
func NewReactions(c Config) (*Reactions, error) {
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	return &Reactions{config: c, points: make(map[Flow]*point)}, nil
}

// Hear takes a message. It has no effect before Look.
func (r *Reactions) Hear(m Message) {
	if len(r.heard) == maxHeard {
		r.stats.Overflow++
		return
	}
	r.heard = append(r.heard, m)
}

// Waiting returns how many messages wait for Look.
func (r *Reactions) Waiting() int { return len(r.heard) }

// Len returns how many flows are limited.
func (r *Reactions) Len() int { return len(r.points) }

// Stats returns the counters.
func (r *Reactions) Stats() Stats { return r.stats }

// Flows calls f for the flows that Look asks for; a flow may come twice.
func (r *Reactions) Flows(f func(Flow)) {
	for flow := range r.points {
		f(flow)
	}
	for i := range r.heard {
		f(r.heard[i].Flow)
	}
}

// Look believes the messages that fit what is in flight, and raises the rates of the other
// flows as their time and bytes have it. state says how a connection is, false if there is
// none. Afterwards Rate says what each flow is to have.
//
// A forger has to guess a number of 2^32 and the ports, or see the packets. It then slows that
// one connection, not below Floor.
func (r *Reactions) Look(now time.Duration, state func(Flow) (Connection, bool)) {
	for flow, p := range r.points {
		c, ok := state(flow)
		if !ok {
			delete(r.points, flow)
			r.stats.Ended++
			continue
		}
		p.Sent(c.Sent - p.sent)
		p.sent, p.una, p.now = c.Sent, p.now, c.Una
		p.Tick(now)
	}
	for _, m := range r.heard {
		c, ok := state(m.Flow)
		switch {
		case !ok:
			r.stats.Unknown++
		case m.Level < 1 || !c.carries(m.Seq, r.since(m.Flow, c.Una)):
			r.stats.Stale++
		default:
			r.stats.Believed++
			r.feedback(m, c, now)
		}
	}
	r.heard = r.heard[:0]
	for flow, p := range r.points {
		if p.Done() {
			delete(r.points, flow)
			r.stats.Recovered++
		}
	}
}

// since returns what was the first number in flight in the round before, una if that is not
// known.
func (r *Reactions) since(flow Flow, una uint32) uint32 {
	if p := r.points[flow]; p != nil {
		return p.una
	}
	return una
}

func (r *Reactions) feedback(m Message, c Connection, now time.Duration) {
	p := r.points[m.Flow]
	if p == nil {
		if len(r.points) == MaxReactions {
			r.evict()
		}
		rate := c.Rate
		if rate == 0 {
			rate = r.config.Limit
		}
		p = &point{Reaction: newReaction(r.config, rate, now), sent: c.Sent, una: c.Una, now: c.Una}
		r.points[m.Flow] = p
	}
	p.heard = now
	p.Feedback(m.Level, now)
}

// evict forgets the flow that nobody has sent a message about for longest.
func (r *Reactions) evict() {
	var oldest Flow
	var at time.Duration
	found := false
	for flow, p := range r.points {
		if !found || p.heard < at {
			oldest, at, found = flow, p.heard, true
		}
	}
	delete(r.points, oldest)
	r.stats.Evicted++
}

// Rate returns the rate of a flow in bytes a second; false if the flow is not limited.
func (r *Reactions) Rate(flow Flow) (float64, bool) {
	p := r.points[flow]
	if p == nil {
		return 0, false
	}
	return p.current, true
}
