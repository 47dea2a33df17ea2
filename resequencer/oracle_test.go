package resequencer

import (
	"slices"
	"time"

	"weft/flowcell"
	"weft/internal/histogram"
)

// oracle does what Buffer does in the most obvious way: slices of all that is
// held, searched each time it is looked at.
type oracle struct {
	// patient waits for every hole of a loss episode in full, as Buffer does not.
	patient bool

	c     Config
	now   time.Duration
	flows []*oracleFlow
	turn  int // counts what waits, so that of two that are due at one time the first goes first
	stats Stats
	out   []int
}

type oracleFlow struct {
	key        flowcell.FiveTuple
	next       uint32
	id         uint16
	isn        *uint32
	phase      phase
	inARow     int  // consecutive segments that counted on
	boundary   bool // among them
	number     string
	quietCount int
	ewma       time.Duration
	measured   bool
	doubted    bool
	vainAt     time.Duration
	lost       bool // a hole was given up and not heard of since
	lostFrom   uint32
	lostTo     uint32
	lostSince  time.Duration
	lostID     uint16
	runs       []*oracleRun // in order
	began      int          // turn at which it began to hold
	paceFrom   uint32
	paceSince  time.Duration
	pace       int64          // bytes in a hold time; -1: not known
	strays     []oraclePacket // near each other
	strayNext  uint32         // of the flow when they came
}

type oracleRun struct {
	packets    []oraclePacket
	start, end uint32
	since, at  time.Duration
	grown      time.Duration
	turn       int
	class      int
	merging    bool
}

type oraclePacket struct {
	n, size  int
	seq, end uint32
	id, more uint16
}

// distance is a - b for numbers less than 2³¹ apart.
func distance(a, b uint32) int64 {
	d := (int64(a) - int64(b)) % (1 << 32)
	switch {
	case d >= 1<<31:
		return d - 1<<32
	case d < -1<<31:
		return d + 1<<32
	}
	return d
}

// cell and later are arithmetic on the wire format, written out.
func cell(id uint16) int { return int(id) / 64 }

func cellDistance(a, b uint16) int {
	d := (cell(a) - cell(b) + 1024) % 1024
	if d >= 512 {
		d -= 1024
	}
	return d
}

func sentLater(a, b uint16) bool {
	d := (int(a) - int(b) + 65536) % 65536
	return d != 0 && d < 32768 // half a turn is before
}

// sentAgain reports whether what fills a hole was sent after what lies behind the hole. In a
// flowcell that numbers all its segments alike nothing is overtaken.
func (f *oracleFlow) sentAgain(id, behind uint16) bool {
	return sentLater(id, behind) || id == behind && f.number == "numbered"
}

func (o *oracle) find(key flowcell.FiveTuple) *oracleFlow {
	for _, f := range o.flows {
		if f.key == key {
			return f
		}
	}
	return nil
}

func (o *oracle) forget(f *oracleFlow) {
	o.flows = slices.DeleteFunc(o.flows, func(g *oracleFlow) bool { return f == g })
}

// push takes a packet; evicted is the flow that a full Buffer chose to forget.
func (o *oracle) push(s *flowcell.Packet, n int, now time.Duration, evicted *flowcell.FiveTuple) []int {
	o.now, o.out = now, nil
	p := oraclePacket{n: n, size: s.Length, seq: s.Seq, id: s.ID, more: uint16(s.MoreSegments), end: s.Seq + uint32(s.Payload)}
	syn, fin, rst := s.Flags&flowcell.FlagSYN != 0, s.Flags&flowcell.FlagFIN != 0, s.Flags&flowcell.FlagRST != 0
	if syn {
		p.end++
	}
	if fin {
		p.end++
	}
	f := o.find(s.Flow)
	if p.end == p.seq && !rst {
		o.stats.Passed++
		return []int{n}
	}
	if rst {
		if f != nil {
			o.releaseAll(f, &o.stats.Flushed)
			o.forget(f)
		}
		o.stats.Passed++
		return append(o.out, n)
	}
	if f == nil {
		if evicted != nil {
			v := o.find(*evicted)
			o.releaseAll(v, &o.stats.Bound)
			o.forget(v)
			o.stats.FlowsEvicted++
		}
		f = &oracleFlow{key: s.Flow, ewma: o.c.Hold / 2, pace: -1}
		o.flows = append(o.flows, f)
		o.start(f, s, syn)
		if !syn && o.c.Discipline == Juggler {
			f.phase = buildUp
		}
	} else if syn && (f.isn == nil || *f.isn != s.Seq) {
		o.releaseAll(f, &o.stats.Flushed)
		o.start(f, s, syn)
	}
	highest := f.next
	for _, r := range f.runs {
		if distance(r.end, highest) > 0 {
			highest = r.end
		}
	}
	if distance(p.seq, highest) < 0 {
		o.stats.ArrivedOutOfOrder++
	}
	if o.stray(f, p) {
		return o.out
	}
	switch o.c.Discipline {
	case Off:
		o.deliver(f, p, &o.stats.Passed)
	case Juggler:
		o.juggle(f, p, s)
	default:
		d := distance(p.seq, f.next)
		switch {
		case d == 0:
			o.deliver(f, p, &o.stats.InOrder)
			o.regular(f)
		case d < 0:
			o.late(f, p)
			o.deliver(f, p, &o.stats.Retransmission)
		case o.loss(f, p.id):
			for len(f.runs) > 0 && distance(f.runs[0].start, p.seq) < 0 {
				o.releaseFirst(f, &o.stats.Loss)
			}
			o.deliver(f, p, &o.stats.Loss)
		default:
			o.hold(f, p)
			o.enforce(f)
			return o.out
		}
		o.proceed(f, p.id)
	}
	return o.out
}

func (o *oracle) start(f *oracleFlow, s *flowcell.Packet, syn bool) {
	*f = oracleFlow{paceFrom: s.Seq, paceSince: o.now, pace: f.pace, key: f.key, ewma: f.ewma, measured: f.measured, doubted: f.doubted, vainAt: f.vainAt, next: s.Seq, id: s.ID}
	if syn {
		f.isn = &s.Seq
	}
}

// perHold is how much comes in a hold time if so much came in t; all of what came in
// a longer time.
func (o *oracle) perHold(bytes uint32, t time.Duration) int64 {
	if t >= o.c.Hold {
		return min(int64(bytes), 1<<30)
	}
	return int64(min(float64(bytes)*float64(o.c.Hold)/float64(max(t, 1)), 1<<30))
}

// window is how much may be missing before a segment of f that counts.
func (o *oracle) window(f *oracleFlow) int64 {
	least, w := int64(256<<10), int64(4<<20)
	if f.key.Proto != flowcell.ProtoTCP {
		least, w = 256, 4096
	}
	if f.pace > 0 {
		w = f.pace
	}
	return max(least, min(w, int64(o.c.FlowBytes), 64<<20))
}

// stray delivers a segment that is not where its flow is. After some in a row that
// are near each other the flow is there.
func (o *oracle) stray(f *oracleFlow, p oraclePacket) bool {
	w := o.window(f)
	missing := distance(p.seq, f.next)
	if missing > 0 {
		for _, r := range f.runs {
			for _, q := range r.packets {
				if f.key.Proto == flowcell.ProtoTCP {
					missing -= int64(q.size)
				} else {
					missing--
				}
			}
		}
		missing = max(missing, min(0, distance(p.seq, f.next)))
	}
	// What would be within the least window without what is held is near as well.
	if distance(p.seq, f.next) > 0 && missing <= w || distance(p.seq, f.next) <= 0 && missing >= -w {
		return false
	}
	if f.lost && distance(p.seq, f.next) < 0 && distance(p.seq, f.lostFrom) >= 0 {
		return false
	}
	end := func() uint32 { // of the lowest, and what follows it
		end := f.strays[0].end
		for _, q := range f.strays[1:] {
			if distance(q.seq, end) <= 0 {
				end = q.end
			}
		}
		return end
	}
	if len(f.strays) > 0 {
		if d := distance(p.seq, end()); f.strayNext != f.next || d < -w || d > w {
			f.strays = nil
		}
	}
	if len(f.strays) == 3 {
		o.releaseAll(f, &o.stats.Flushed)
		o.stats.Leaps++
		f.next, f.lost = end(), false
		for _, q := range f.strays {
			if q.end == f.next {
				f.id = q.id + q.more
			}
		}
		f.paceFrom, f.paceSince, f.strays = f.next, o.now, nil
		return false
	}
	f.strays, f.strayNext = append(f.strays, p), f.next
	if distance(p.seq, f.next) < 0 {
		o.stats.DeliveredOutOfOrder++
	}
	o.stats.Stray++
	o.out = append(o.out, p.n)
	return true
}

// loss is rules 1 and 3 of Presto's receiver.
func (o *oracle) loss(f *oracleFlow, id uint16) bool {
	return o.c.Discipline == Presto && f.number == "numbered" && cellDistance(id, f.id) <= 0
}

func (o *oracle) juggle(f *oracleFlow, p oraclePacket, s *flowcell.Packet) {
	d := distance(p.seq, f.next)
	if f.phase == buildUp && d < 0 {
		f.next, d = p.seq, 0
	}
	if d < 0 {
		o.late(f, p)
		if !f.lost {
			f.phase = normal
		}
		before := f.next
		o.deliver(f, p, &o.stats.Retransmission)
		if f.next != before {
			o.proceed(f, p.id)
		}
		return
	}
	if f.phase == recovery {
		if d == 0 {
			o.deliver(f, p, &o.stats.InOrder)
		} else {
			o.deliver(f, p, &o.stats.Loss)
		}
		return
	}
	o.regular(f)
	o.hold(f, p)
	r := f.runs[0]
	pushed := s.Flags&(flowcell.FlagPSH|flowcell.FlagURG|flowcell.FlagSYN|flowcell.FlagFIN) != 0
	if r.start == f.next {
		if !r.merging {
			f.phase = normal
			o.releaseFirst(f, &o.stats.Filled)
		} else if pushed || r.end-r.start >= 65536 {
			f.phase = normal
			o.releaseFirst(f, &o.stats.InOrder)
		}
	}
	if len(f.runs) > 0 {
		o.enforce(f)
	}
}

func (o *oracle) regular(f *oracleFlow) {
	if f.quietCount++; f.quietCount == 32 {
		f.quietCount = 0
		f.quiet()
		if t := o.now - f.paceSince; t >= o.c.Hold/8 {
			f.pace = max(o.perHold(f.next-f.paceFrom, t), max(f.pace, 0)-max(f.pace, 0)/4)
			f.paceFrom, f.paceSince = f.next, o.now
		}
	}
}

func (f *oracleFlow) quiet() {
	if f.measured {
		f.ewma -= f.ewma / 64
	} else {
		f.ewma -= f.ewma / 8
	}
}

func (f *oracleFlow) observe(t time.Duration) {
	if t >= f.ewma/4 {
		f.doubted = false
	}
	if t >= f.ewma {
		f.ewma = t
	} else {
		f.ewma -= (f.ewma - t) / 64
	}
	f.measured = true
}

func (o *oracle) late(f *oracleFlow, p oraclePacket) {
	if f.lost && distance(p.seq, f.lostTo) < 0 && distance(p.end, f.lostFrom) > 0 {
		t := o.now - f.lostSince
		if sentLater(f.lostID, p.id) || p.id == f.lostID && t <= o.c.Hold && f.number != "numbered" {
			o.stats.TimeoutsLate++
			switch {
			case t <= o.c.Hold:
				f.observe(t)
			case o.patient:
				f.observe(o.c.Hold)
			}
		} else {
			o.stats.TimeoutsLoss++
			f.quiet()
		}
		f.lost = false
	}
	if f.number == "numbered" && cell(p.id) == cell(f.id) && p.id < f.id {
		f.number = "unnumbered"
		o.stats.FlowsUnnumbered++
	}
}

// judge is what a segment that continues another tells of the numbers.
func (o *oracle) judge(f *oracleFlow, id uint16) {
	switch {
	case f.number != "":
	case id%64 == 63 || f.id%64 == 63:
		f.number = "unnumbered"
		o.stats.FlowsUnnumbered++
	case cell(id) == cell(f.id) && id == f.id+1, id == f.id && id%64 == 0:
		f.inARow++
	case cellDistance(id, f.id) == 1 && id%64 == 0:
		f.inARow++
		f.boundary = true
	default:
		f.inARow, f.boundary = 0, false
	}
	if f.number == "" && f.boundary && f.inARow >= 8 {
		f.number = "numbered"
		o.stats.FlowsNumbered++
	}
}

// wait is the time for which f's next hole is waited for: twice the measure,
// rounded up to MinHold doubled some times, at most Hold.
func (o *oracle) wait(t time.Duration) (wait time.Duration, class int) {
	wait = o.c.MinHold
	for wait < t && wait < o.c.Hold {
		wait *= 2
		class++
	}
	return min(wait, o.c.Hold), class
}

func (o *oracle) enqueue(r *oracleRun, wait time.Duration, class int) {
	o.turn++
	r.turn, r.at, r.class = o.turn, o.now+wait, class
}

func (o *oracle) hold(f *oracleFlow, p oraclePacket) {
	if len(f.runs) == 0 {
		o.turn++
		f.began = o.turn
	}
	o.stats.HeldPackets++
	o.stats.HeldBytes += p.size
	// The run that p continues, or repeats part of; else the one that it
	// reaches; else a new one.
	i := len(f.runs) - 1
	for i >= 0 && distance(f.runs[i].start, p.seq) > 0 {
		i--
	}
	switch {
	case i >= 0 && distance(p.seq, f.runs[i].end) <= 0:
		r := f.runs[i]
		r.packets = append(r.packets, p)
		if cell(p.id) == cell(r.packets[0].id) {
			r.grown = o.now
		}
		if distance(p.end, r.end) > 0 {
			r.end = p.end
		}
	case i+1 < len(f.runs) && distance(f.runs[i+1].start, p.end) <= 0:
		i++
		r := f.runs[i]
		r.packets = append([]oraclePacket{p}, r.packets...)
		r.start = p.seq
		if distance(p.end, r.end) > 0 {
			r.end = p.end
		}
	default:
		i++
		r := &oracleRun{packets: []oraclePacket{p}, start: p.seq, end: p.end, since: o.now, grown: o.now}
		if p.seq == f.next {
			r.merging = true
			o.enqueue(r, o.c.Merge, 1000)
		} else {
			wait, class := o.wait(2 * f.ewma)
			o.enqueue(r, wait, class)
		}
		f.runs = slices.Insert(f.runs, i, r)
	}
	r := f.runs[i]
	for i+1 < len(f.runs) && distance(f.runs[i+1].start, r.end) <= 0 {
		x := f.runs[i+1]
		if !f.sentAgain(p.id, x.packets[0].id) {
			f.observe(o.now - x.since)
		}
		r.packets = append(r.packets, x.packets...)
		if distance(x.end, r.end) > 0 {
			r.end = x.end
		}
		if x.since < r.since {
			r.since, r.at, r.turn, r.class, r.merging = x.since, x.at, x.turn, x.class, x.merging
		}
		f.runs = slices.Delete(f.runs, i+1, i+2)
	}
}

// proceed is rules 1 to 3 for what is held.
func (o *oracle) proceed(f *oracleFlow, by uint16) {
	for len(f.runs) > 0 {
		r := f.runs[0]
		if distance(r.start, f.next) <= 0 {
			if !f.sentAgain(by, r.packets[0].id) {
				f.observe(o.now - r.since)
			}
			o.releaseFirst(f, &o.stats.Filled)
		} else if o.loss(f, r.packets[0].id) {
			o.releaseFirst(f, &o.stats.Loss)
		} else {
			return
		}
	}
}

func (o *oracle) releaseAll(f *oracleFlow, cause *uint64) {
	for len(f.runs) > 0 {
		o.releaseFirst(f, cause)
	}
}

func (o *oracle) releaseFirst(f *oracleFlow, cause *uint64) {
	r := f.runs[0]
	f.runs = f.runs[1:]
	var waited *histogram.Histogram
	switch cause {
	case &o.stats.Filled:
		waited = &o.stats.HoldFilled
	case &o.stats.TimedOut:
		waited = &o.stats.HoldTimedOut
	}
	if waited != nil {
		i, t := 0, o.now-r.since
		for i < histogram.Buckets && t > histogram.Bound(i) {
			i++
		}
		waited.Counts[i]++
		waited.Sum += t
	}
	for _, p := range r.packets {
		o.stats.HeldPackets--
		o.stats.HeldBytes -= p.size
		o.deliver(f, p, cause)
	}
}

func (o *oracle) deliver(f *oracleFlow, p oraclePacket, cause *uint64) {
	d := distance(p.seq, f.next)
	if d < 0 {
		o.stats.DeliveredOutOfOrder++
	}
	if d == 0 {
		o.judge(f, p.id)
	}
	if distance(p.end, f.next) > 0 {
		f.next, f.id = p.end, p.id+p.more
	}
	*cause++
	o.out = append(o.out, p.n)
}

// sum adds up what is held of the flows for which which is true.
func (o *oracle) sum(which func(*oracleFlow) bool) (packets, bytes int) {
	for _, f := range o.flows {
		for _, r := range f.runs {
			for _, p := range r.packets {
				if which(f) {
					packets++
					bytes += p.size
				}
			}
		}
	}
	return packets, bytes
}

func (o *oracle) enforce(f *oracleFlow) {
	bound := func(packets, bytes int, which func(*oracleFlow) bool) {
		for {
			p, b := o.sum(which)
			if p <= packets && b <= bytes {
				return
			}
			var first *oracleFlow
			for _, g := range o.flows {
				if which(g) && len(g.runs) > 0 && (first == nil || g.began < first.began) {
					first = g
				}
			}
			o.releaseAll(first, &o.stats.Bound)
		}
	}
	bound(o.c.FlowPackets, o.c.FlowBytes, func(g *oracleFlow) bool { return g == f })
	bound(o.c.PeerPackets, o.c.PeerBytes, func(g *oracleFlow) bool { return g.key.Src == f.key.Src })
	bound(o.c.TotalPackets, o.c.TotalBytes, func(*oracleFlow) bool { return true })
	o.stats.MaxHeldPackets = max(o.stats.MaxHeldPackets, o.stats.HeldPackets)
	o.stats.MaxHeldBytes = max(o.stats.MaxHeldBytes, o.stats.HeldBytes)
}

// nextDue returns what is due first: of two at one time that of the shorter wait,
// of two that waited equally long the one that began first.
func (o *oracle) nextDue() (due *oracleRun, of *oracleFlow) {
	for _, f := range o.flows {
		for _, r := range f.runs {
			if due == nil || r.at < due.at ||
				r.at == due.at && (r.class < due.class || r.class == due.class && r.turn < due.turn) {
				due, of = r, f
			}
		}
	}
	return due, of
}

func (o *oracle) expire(now time.Duration) []int {
	o.now, o.out = now, nil
	for {
		r, f := o.nextDue()
		if r == nil || r.at > now {
			return o.out
		}
		if r.start == f.next {
			f.phase = normal
			o.releaseFirst(f, &o.stats.InOrder)
			continue
		}
		if r.merging {
			r.merging = false
			wait, class := o.wait(2 * f.ewma)
			o.enqueue(r, wait, class)
			continue
		}
		if wait, class := o.wait(f.ewma / 2); o.c.Discipline == Presto && f.number == "numbered" && now-r.grown < f.ewma/2 && now+wait <= r.since+o.c.Hold {
			o.stats.TimeoutsPutOff++
			o.enqueue(r, wait, class)
			continue
		}
		o.stats.Timeouts++
		if r.since >= f.vainAt {
			o.stats.TimeoutsWait += now - r.since
			f.vainAt = now
			switch {
			case o.patient:
			case f.measured && !f.doubted:
				f.doubted = true
			default:
				f.ewma /= 4
			}
		}
		f.lost, f.lostFrom, f.lostTo, f.lostSince, f.lostID = true, f.next, r.start, r.since, r.packets[0].id
		if o.c.Discipline == Juggler {
			o.releaseAll(f, &o.stats.TimedOut)
			f.phase = recovery
			continue
		}
		for slices.Contains(f.runs, r) {
			o.releaseFirst(f, &o.stats.TimedOut)
		}
		o.proceed(f, f.id)
	}
}

func (o *oracle) flush() []int {
	o.out = nil
	for {
		var first *oracleFlow
		for _, f := range o.flows {
			if len(f.runs) > 0 && (first == nil || f.began < first.began) {
				first = f
			}
		}
		if first == nil {
			return o.out
		}
		o.releaseAll(first, &o.stats.Flushed)
	}
}

func (o *oracle) Stats() Stats {
	s := o.stats
	s.Flows = len(o.flows)
	return s
}
