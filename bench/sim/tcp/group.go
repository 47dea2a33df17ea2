package tcp

import "math"

// MaxSubflows is the most subflows that a connection may have.
const MaxSubflows = 32

// Group is the sending side of what the subflows of a connection share, as in MPTCP (RFC
// 6824): the data, which whoever has room takes, the receiver's one window, and linked
// increases (RFC 6356). Each subflow numbers what it sends, and finds and repairs its
// losses by itself. What a subflow had under way when its timer ran out is also sent by
// others, once each time.
//
// The owner has a Sender and a Receiver for each subflow, and a Receiver for the data of
// all. As to its life, see Sender. It must not be moved.
type Group struct {
	c          *Config
	total, all int64 // bytes and segments of data
	next       int64 // the first segment that nobody has taken
	una        int64 // all before have arrived, as far as the receiver has said
	short      bool  // a subflow had room where the receiver's window had none
	again      []lent
	waits      ring // segments that are in again
	order      []int
	linked
}

// lent is a segment of data that a subflow gave up, for others to send.
type lent struct {
	data int64
	from int
}

// Start begins a connection that sends total bytes; 0: without end. c comes from
// WithDefaults and must not change. Then Add its subflows.
func (g *Group) Start(c *Config, total int64) {
	waits := g.waits
	waits.reset(c.window())
	*g = Group{c: c, waits: waits, again: g.again[:0], order: g.order[:0], linked: linked{shares: g.shares[:0]}}
	if g.total = total; total <= 0 {
		g.total = math.MaxInt64 - int64(c.MSS)
	}
	g.all = c.segments(g.total)
}

// Add makes a Sender one more subflow, and starts it.
func (g *Group) Add(s *Sender) {
	s.Start(g.c, 0)
	s.sub = &subflow{group: g, number: len(g.shares), data: make([]int64, 16)}
	g.order = append(g.order, s.sub.number)
	g.note(s.sub.number, s)
}

// Acked takes what an acknowledgement says of the connection: the data's first so many
// bytes have arrived. It returns whether subflows may now send that could not before: ask
// those of Order.
func (g *Group) Acked(bytes int64) bool {
	to := min(g.c.segments(bytes), g.next)
	if to <= g.una {
		return false
	}
	g.waits.clear(g.una, to)
	g.una = to
	return g.short
}

// Done reports whether all data has arrived.
func (g *Group) Done() bool { return g.una == g.all }

// Full reports whether no subflow may send anything new: the receiver's window has no room,
// as one of them has found since Order was called.
func (g *Group) Full() bool { return g.short && len(g.again) == 0 }

// Order returns the numbers of subflows in the order in which they are to be asked for
// what they send, where more than one may have room: the one with the shortest round trip
// first, as in Linux. The caller must not keep it.
func (g *Group) Order() []int {
	g.short = false
	for i := 1; i < len(g.order); i++ { // nearly sorted already
		for j := i; j > 0 && g.shares[g.order[j]].rtt < g.shares[g.order[j-1]].rtt; j-- {
			g.order[j], g.order[j-1] = g.order[j-1], g.order[j]
		}
	}
	return g.order
}

// take returns the segment of data that a subflow sends next, and false if it has none.
func (g *Group) take(number int) (int64, bool) {
	for i := 0; i < len(g.again); {
		l := g.again[i]
		switch {
		case l.data < g.una: // has arrived
			g.again = append(g.again[:i], g.again[i+1:]...)
		case l.from != number:
			g.again = append(g.again[:i], g.again[i+1:]...)
			g.waits.clear(l.data, l.data+1)
			return l.data, true
		default:
			i++
		}
	}
	if g.next == g.all {
		return 0, false
	}
	if g.next+1-g.una > g.c.window() {
		g.short = true
		return 0, false
	}
	g.next++
	return g.next - 1, true
}

// lend has others send a segment of data, too.
func (g *Group) lend(data int64, from int) {
	if data < g.una || len(g.shares) == 1 || g.waits.has(data) {
		return
	}
	g.waits.set(data, data+1)
	g.again = append(g.again, lent{data, from})
}
