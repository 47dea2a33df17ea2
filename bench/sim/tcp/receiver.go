package tcp

import "math"

// Receiver is the receiving side of a connection. As to its life, see Sender.
type Receiver struct {
	c     *Config
	total int64
	next  int64 // segment; all before have arrived
	held  int64 // segments beyond a hole
	have  ring  // these
}

// Start begins a connection as Sender.Start does.
func (r *Receiver) Start(c *Config, total int64) {
	r.have.reset(c.window())
	if total <= 0 {
		total = math.MaxInt64 - int64(c.MSS)
	}
	*r = Receiver{c: c, total: total, have: r.have}
}

// Data takes a segment of n bytes from seq on, as a Sender cuts them. It returns the
// acknowledgement, whose Echo the caller fills in, and how many bytes can now be
// delivered to the application. marked says that the packet had a congestion mark.
func (r *Receiver) Data(seq int64, n int32, marked bool) (a Ack, delivered int64) {
	before := r.cum()
	a = Ack{ECE: marked, Echo: -1}
	switch i := r.segment(seq); {
	case n == 0 || i < r.next || i >= r.next+r.c.window():
	case i == r.next:
		r.next++
		if r.held > 0 {
			end := r.have.hole(r.next, r.next+r.c.window())
			r.have.clear(r.next, end)
			r.held -= end - r.next
			r.next = end
		}
	default:
		if !r.have.has(i) {
			r.have.set(i, i+1)
			r.held++
		}
		mss := int64(r.c.MSS)
		from := r.have.runStart(r.next+1, i) * mss
		to := min(r.have.hole(i+1, r.next+r.c.window())*mss, r.total)
		a.Sacked, a.SackedLen = from, int32(to-from)
	}
	a.Cum = r.cum()
	return a, a.Cum - before
}

func (r *Receiver) cum() int64 { return min(r.next*int64(r.c.MSS), r.total) }

// segment returns the number of the segment that begins at seq.
func (r *Receiver) segment(seq int64) int64 {
	if mss := int64(r.c.MSS); seq != r.next*mss {
		return seq / mss
	}
	return r.next
}

// Holed reports whether segments beyond a hole have arrived.
func (r *Receiver) Holed() bool { return r.held > 0 }

// Done reports whether all bytes have arrived.
func (r *Receiver) Done() bool { return r.cum() == r.total }
