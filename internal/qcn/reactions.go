package qcn

import (
	"net/netip"
	"slices"
	"time"
)

const (
	// MaxReactions bounds the reaction points of a host.
	MaxReactions = 1024
	// maxHeard bounds the messages that wait for Look.
	maxHeard = 256
	// maxWatched bounds the flows that are watched and not limited, each for watchFor after its
	// last message.
	maxWatched = 512
	watchFor   = time.Second
	// late is by how many bytes acknowledgements may have overtaken a message: what 10 Gbit/s
	// carry in 13 ms.
	late = 1 << 24
	// maxWindow bounds TCP's windows (RFC 7323 §2.3).
	maxWindow = 1 << 30
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
	Una, Next uint32 // its sequence numbers that are in flight: from Una up to, but not with, Next
	Sent      uint64 // bytes since it began
	// Rate is at which it delivers, bytes a second, or what its window allows if it had little
	// to send. 0: not known.
	Rate float64
}

// carries reports whether a sequence number is in flight, or was acknowledged within the last
// window's worth of bytes or since una was in flight, late bytes at most: messages may be
// overtaken by acknowledgements.
func (c *Connection) carries(seq, una uint32) bool {
	window := c.Next - c.Una
	if window < maxWindow && seq-(c.Una-window) < 2*window {
		return true
	}
	since := c.Next - una
	return since < late && seq-una < since
}

// Stats counts messages, and reaction points that ended.
type Stats struct {
	Believed  uint64 `json:"believed"`  // messages that have lowered a rate
	Answered  uint64 `json:"answered"`  // about packets that were sent before the rate was lowered last
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
	others map[Flow]*watch // of which a message came too late
	heard  []Message
	stats  Stats
}

// point is a flow's reaction point.
type point struct {
	Reaction
	watch
	sent uint64 // Connection.Sent as of the last round
	next uint32 // Connection.Next when the rate was lowered last
}

// watch is what is known of a flow from earlier rounds. Where a message takes longer than an
// acknowledgement, that alone tells what the message is about.
type watch struct {
	una   uint32        // Connection.Una as of the round before
	now   uint32        // and as of the last one
	heard time.Duration // the last message
}

func (w *watch) look(c Connection) { w.una, w.now = w.now, c.Una }

// NewReactions returns reaction points of a host, none at first. It fails if the
// configuration is wrong.
func NewReactions(c Config) (*Reactions, error) {
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	return &Reactions{config: c, points: make(map[Flow]*point), others: make(map[Flow]*watch)}, nil
}

// Hear takes a message. It has no effect before Look.
func (r *Reactions) Hear(m Message) {
	if len(r.heard) == maxHeard {
		r.stats.Overflow++
		return
	}
	r.heard = append(r.heard, m)
}

// Len returns how many flows are limited.
func (r *Reactions) Len() int { return len(r.points) }

// Stats returns the counters.
func (r *Reactions) Stats() Stats { return r.stats }

// Known reports whether Look will ask for a flow also without a further message.
func (r *Reactions) Known(flow Flow) bool { return r.points[flow] != nil || r.others[flow] != nil }

// Idle reports whether no flow is known.
func (r *Reactions) Idle() bool { return len(r.points)+len(r.others) == 0 }

// Flows calls f for the flows that Look asks for; a flow may come twice.
func (r *Reactions) Flows(f func(Flow)) {
	for flow := range r.points {
		f(flow)
	}
	for flow := range r.others {
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
// Of several messages about what was in flight at a time only the strongest counts, as all of
// it was sent at the rate that it lowers. The standard's reaction points are nearer to the
// queue, and need no such rule.
//
// Messages must be authentic: the owner hears none that is not signed. What is in flight is no
// proof of its own, since one guess in some thousand hits it. It has messages count once and for
// a short time, and bounds those who send a switch packets in another's name.
func (r *Reactions) Look(now time.Duration, state func(Flow) (Connection, bool)) {
	for flow, p := range r.points {
		c, ok := state(flow)
		if !ok {
			delete(r.points, flow)
			r.stats.Ended++
			continue
		}
		p.Sent(c.Sent - p.sent)
		p.sent = c.Sent
		p.look(c)
		p.Tick(now)
	}
	for flow, w := range r.others {
		c, ok := state(flow)
		if w.look(c); !ok || now-w.heard > watchFor {
			delete(r.others, flow)
		}
	}
	slices.SortStableFunc(r.heard, func(a, b Message) int { return b.Level - a.Level })
	for _, m := range r.heard {
		c, ok := state(m.Flow)
		p := r.points[m.Flow]
		switch {
		case !ok:
			r.stats.Unknown++
		case m.Level < 1 || !c.carries(m.Seq, r.since(m.Flow, c.Una)):
			r.stats.Stale++
			r.watch(m.Flow, c, now)
		case p != nil && int32(m.Seq-p.next) < 0:
			r.stats.Answered++
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
	if w := r.others[flow]; w != nil {
		return w.una
	}
	return una
}

// watch has a flow watched, of which a message came that may have been too late.
func (r *Reactions) watch(flow Flow, c Connection, now time.Duration) {
	if w := r.others[flow]; w != nil {
		w.heard = now
	} else if r.points[flow] == nil && len(r.others) < maxWatched {
		r.others[flow] = &watch{c.Una, c.Una, now}
	}
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
		p = &point{Reaction: newReaction(r.config, rate, now), watch: watch{una: c.Una, now: c.Una}, sent: c.Sent}
		if w := r.others[m.Flow]; w != nil {
			p.watch = *w
			delete(r.others, m.Flow)
		}
		r.points[m.Flow] = p
	}
	p.heard, p.next = now, c.Next
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
