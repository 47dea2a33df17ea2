package hops

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"weft/encap"
)

// Config says how paths are walked.
type Config struct {
	Self, Target netip.Addr
	Carrier      encap.Carrier
	Paths        []Path
	// Interval is between two packets to a hop of a path, and between two that one switch is
	// to answer, once it has answered Burst.
	Interval time.Duration
	Timeout  time.Duration // how long an answer is waited for
	Count    int           // packets to each hop of each path; 0: no end
	Random   func() uint64 // unpredictable: nobody else is to answer
}

// Burst is how many answers in a row a switch gives, less than Linux does.
const Burst = 5

// lag is how long an answer may wait here before it is read.
const lag = 500 * time.Millisecond

const (
	maxWaiting = 1 << 16
	maxTrips   = 256 // of a hop, of which the median is
)

// Walk walks. It owns no socket and no clock. It is not safe for concurrent use.
type Walk struct {
	c       Config
	stats   [][]Stats // by path and hop
	turns   []turn    // who is asked, switch by switch
	waiting map[uint64]*asked
	outer   uint16
	err     error // a packet could not be made
}

// Stats is what is known of a hop of a path.
type Stats struct {
	Sent, Answered, Lost int
	Min, Max             time.Duration
	From                 map[netip.Addr]int // who has answered, how often
	last                 time.Time          // one was sent
	trips                []time.Duration    // the latest
	next                 int
}

// Median is that of the latest 256 round trips.
func (s *Stats) Median() time.Duration {
	if len(s.trips) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s.trips))
	return sorted[len(sorted)/2]
}

// place is a hop of a path.
type place struct{ path, hop int }

// turn is a switch or the target, and the paths that ask it one after the other.
type turn struct {
	places []place
	free   bool // a target that runs weft: it answers each time
	next   int
	tokens float64
	at     time.Time
}

// asked is a packet on its way.
type asked struct {
	place
	sent  time.Time
	outer uint16
	sum   uint16
	// ends are the addresses of the packet's headers, from the outermost one on.
	ends []ends
}

// ends are the addresses of a header.
type ends struct{ from, to netip.Addr }

// New returns a Walk.
func New(c Config, now time.Time) (*Walk, error) {
	switch {
	case c.Interval <= 0 || c.Timeout <= 0:
		return nil, fmt.Errorf("hops: Interval is %v and Timeout %v; both must be above 0", c.Interval, c.Timeout)
	case len(c.Paths) == 0:
		return nil, fmt.Errorf("hops: there are no Paths")
	}
	w := &Walk{c: c, waiting: make(map[uint64]*asked), outer: uint16(c.Random())}
	at := make(map[string]int)
	for i, p := range c.Paths {
		w.stats = append(w.stats, make([]Stats, len(p.Hops)))
		for j, h := range p.Hops {
			w.stats[i][j].From = make(map[netip.Addr]int)
			k, known := at[h.Name]
			if !known {
				k = len(w.turns)
				at[h.Name] = k
				w.turns = append(w.turns, turn{tokens: Burst, at: now})
			}
			w.turns[k].places = append(w.turns[k].places, place{i, j})
		}
	}
	return w, nil
}

// Packet is one to send.
type Packet struct {
	Bytes  []byte     // from its first IP header on
	To     netip.Addr // its first destination
	Uplink int
	Token  uint64
}

// Next returns a packet to send now; ok is false if there is none. Call it until then. After an
// error there is none any more: see Err.
func (w *Walk) Next(now time.Time) (p Packet, ok bool) {
	for i := range w.turns {
		t := &w.turns[i]
		t.tokens = min(Burst, t.tokens+float64(now.Sub(t.at))/float64(w.c.Interval))
		t.at = now
		if t.tokens < 1 && !t.free || len(w.waiting) >= maxWaiting || w.err != nil {
			continue
		}
		for range t.places {
			at := t.places[t.next]
			t.next = (t.next + 1) % len(t.places)
			s := &w.stats[at.path][at.hop]
			if w.c.Count > 0 && s.Sent >= w.c.Count || s.Sent > 0 && now.Sub(s.last) < w.c.Interval {
				continue
			}
			p, err := w.packet(at, now)
			if err != nil {
				w.err = fmt.Errorf("packet to %s: %w", w.c.Paths[at.path].Hops[at.hop].Name, err)
				return p, false
			}
			t.tokens = max(0, t.tokens-1)
			s.Sent++
			s.last = now
			return p, true
		}
	}
	return p, false
}

// packet makes a packet to a hop, and waits for its answer.
func (w *Walk) packet(at place, now time.Time) (p Packet, err error) {
	path := &w.c.Paths[at.path]
	hop := path.Hops[at.hop]
	token := w.c.Random()
	probe := encap.Probe{Kind: encap.ProbeRequest, Path: uint16(max(path.Number, 0)), Token: token, Origin: w.c.Self, Target: w.c.Target, Carrier: w.c.Carrier, AsData: true}
	b, err := encap.AppendProbe(make([]byte, encap.MaxOverhead), probe)
	if err != nil {
		return p, err
	}
	inner := b[encap.MaxOverhead:]
	a := &asked{place: at, sent: now, sum: sumOf(inner), ends: []ends{{source(inner), destination(inner)}}}
	if hop.Inner {
		setTTL(inner, hop.TTL)
	}
	p = Packet{Bytes: inner, To: w.c.Target, Uplink: path.Uplink, Token: token}
	if path.Number >= 0 {
		if w.outer++; w.outer == 0 {
			w.outer++
		}
		a.outer = w.outer
		if p.Bytes, err = path.Outer.Encapsulate(b, w.outer); err != nil {
			return p, err
		}
		if !hop.Inner {
			setTTL(p.Bytes, hop.TTL)
		}
		p.To = destination(p.Bytes)
		a.ends = append([]ends{{source(p.Bytes), p.To}}, a.ends...)
	}
	w.waiting[token] = a
	return p, nil
}

// Left takes note of when a packet has left in fact, as its device says.
func (w *Walk) Left(token uint64, at time.Time) {
	if a := w.waiting[token]; a != nil {
		a.sent = at
	}
}

// Receive takes a packet that has come in at a time, any bytes.
func (w *Walk) Receive(b []byte, at time.Time) {
	a, ok := parseAnswer(b)
	if !ok {
		return
	}
	token, q := w.find(&a)
	if q == nil {
		return
	}
	hop := w.c.Paths[q.path].Hops[q.hop]
	if hop.Target != a.reached {
		return // a path that is shorter than it should be, or an error of a link's
	}
	delete(w.waiting, token)
	if a.byWeft {
		w.freeTarget(hop.Name)
	}
	s := &w.stats[q.path][q.hop]
	trip := max(at.Sub(q.sent), 0)
	if trip > w.c.Timeout {
		s.Lost++
		return
	}
	s.Answered++
	if len(s.From) < 16 || s.From[a.from] > 0 {
		s.From[a.from]++
	}
	if s.Answered == 1 || trip < s.Min {
		s.Min = trip
	}
	s.Max = max(s.Max, trip)
	if len(s.trips) < maxTrips {
		s.trips = append(s.trips, trip)
	} else {
		s.trips[s.next] = trip
		s.next = (s.next + 1) % maxTrips
	}
}

// freeTarget takes note that the target runs weft: the kernel's limit of ICMP is not for it.
func (w *Walk) freeTarget(name string) {
	for i := range w.turns {
		at := w.turns[i].places[0]
		if h := w.c.Paths[at.path].Hops[at.hop]; h.Target && h.Name == name {
			w.turns[i].free = true
		}
	}
}

// find returns what an answer is about: by the token, or where the quote is too short for
// that, by the numbers in the headers. A quote must have the addresses that were sent.
func (w *Walk) find(a *answer) (uint64, *asked) {
	if a.token != 0 {
		if q := w.waiting[a.token]; q != nil && q.quotedBy(a) {
			return a.token, q
		}
		return 0, nil
	}
	for token, q := range w.waiting {
		if (a.outer != 0 && q.outer == a.outer || a.outer == 0 && a.sum != 0 && q.sum == a.sum) && q.quotedBy(a) {
			return token, q
		}
	}
	return 0, nil
}

// quotedBy reports whether an answer quotes one of the packet's headers, and went to its source.
// A label of SRv6 is taken out of the destination on the way.
func (q *asked) quotedBy(a *answer) bool {
	if a.byWeft {
		return true
	}
	return slices.ContainsFunc(q.ends, func(e ends) bool {
		return e.from == a.quoted.from && a.to == e.from && (e.to == a.quoted.to || e.to.Is6())
	})
}

// Expire counts what has not been answered in time as lost.
func (w *Walk) Expire(now time.Time) {
	for token, q := range w.waiting {
		if now.Sub(q.sent) > w.c.Timeout+lag {
			delete(w.waiting, token)
			w.stats[q.path][q.hop].Lost++
		}
	}
}

// Err is why no packet could be made; nil: none has failed.
func (w *Walk) Err() error { return w.err }

// Done reports whether all has been sent and answered, or is lost, or a packet could not be made.
func (w *Walk) Done() bool {
	if w.err != nil {
		return true
	}
	if w.c.Count == 0 || len(w.waiting) > 0 {
		return false
	}
	for _, path := range w.stats {
		for i := range path {
			if path[i].Sent < w.c.Count {
				return false
			}
		}
	}
	return true
}

// Stats is what is known of a hop of a path, by their places in Config.Paths.
func (w *Walk) Stats(path, hop int) *Stats { return &w.stats[path][hop] }

// Paths are those of the Config.
func (w *Walk) Paths() []Path { return w.c.Paths }
