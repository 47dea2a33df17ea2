package resequencer

import (
	"sort"
	"time"

	"weft/flowcell"
)

// oracle does what Buffer does in the most obvious way: one slice of all that
// is held, searched and sorted anew each time it is looked at.
type oracle struct {
	c     Config
	held  []oracleHeld  // in order of arrival
	flows []*oracleFlow // the latest used last
	stats Stats
}

type oracleHeld struct {
	id, size int
	flow     *oracleFlow
	seq, end uint32
	since    time.Duration
}

type oracleFlow struct {
	key     flowcell.FiveTuple
	next    uint32
	syn     *uint32
	in, out oracleTop
}

type oracleTop struct {
	known bool
	top   uint32
}

// reordered is RFC 4737's test in 64-bit numbers.
func (o *oracleTop) reordered(seq, end uint32) bool {
	s := distance(seq, o.top)
	if !o.known || s > 64<<20 || s < -64<<20 {
		*o = oracleTop{true, end}
		return false
	}
	if distance(end, o.top) > 0 {
		o.top = end
	}
	return s < 0
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

func (o *oracle) push(s Segment, id int, now time.Duration) (out []int) {
	n := uint32(s.Payload)
	if s.Flags&flowcell.FlagSYN != 0 {
		n++
	}
	if s.Flags&flowcell.FlagFIN != 0 {
		n++
	}
	rst := s.Flags&flowcell.FlagRST != 0
	if n == 0 && !rst {
		o.stats.Passed++
		return []int{id}
	}
	f := o.use(s.Flow)
	if rst {
		if f != nil {
			out = o.releaseAll(f, &o.stats.Flushed)
			o.flows = o.flows[:len(o.flows)-1]
		}
		o.stats.Passed++
		return append(out, id)
	}
	syn := s.Flags&flowcell.FlagSYN != 0
	if f == nil {
		if len(o.flows) == o.c.Flows {
			out = o.releaseAll(o.flows[0], &o.stats.Bound)
			o.flows = o.flows[1:]
			o.stats.FlowsEvicted++
		}
		f = &oracleFlow{key: s.Flow, next: s.Seq}
		o.flows = append(o.flows, f)
	} else if syn && (f.syn == nil || *f.syn != s.Seq) {
		out = o.releaseAll(f, &o.stats.Flushed)
		*f = oracleFlow{key: s.Flow, next: s.Seq}
	}
	if syn {
		f.syn = &s.Seq
	}
	end := s.Seq + n
	if f.in.reordered(s.Seq, end) {
		o.stats.ArrivedOutOfOrder++
	}
	h := oracleHeld{id, s.Size, f, s.Seq, end, now}
	if o.c.Off {
		return append(out, o.deliver(h, &o.stats.Passed))
	}
	d := distance(s.Seq, f.next)
	if d > 64<<20 || d < -64<<20 {
		out = append(out, o.releaseAll(f, &o.stats.Flushed)...)
		f.next = s.Seq
		d = 0
	}
	if d <= 0 {
		cause := &o.stats.InOrder
		if d < 0 {
			cause = &o.stats.Retransmission
		}
		out = append(out, o.deliver(h, cause))
		return append(out, o.releaseFrom(f, &o.stats.Filled)...)
	}
	o.held = append(o.held, h)
	packets, bytes := o.sum(f)
	if packets > o.c.FlowPackets || bytes > o.c.FlowBytes {
		out = append(out, o.releaseAll(f, &o.stats.Bound)...)
	}
	for {
		packets, bytes := o.sum(nil)
		if packets <= o.c.TotalPackets && bytes <= o.c.TotalBytes {
			o.stats.MaxHeldPackets = max(o.stats.MaxHeldPackets, packets)
			o.stats.MaxHeldBytes = max(o.stats.MaxHeldBytes, bytes)
			return out
		}
		out = append(out, o.releaseAll(o.held[0].flow, &o.stats.Bound)...)
	}
}

func (o *oracle) expire(now time.Duration) (out []int) {
	for len(o.held) > 0 && now-o.held[0].since >= o.c.Hold {
		oldest := o.held[0]
		f := oldest.flow
		for _, k := range o.of(f) {
			if distance(k.seq, oldest.seq) <= 0 {
				out = append(out, o.deliver(k, &o.stats.TimedOut))
			}
		}
		out = append(out, o.releaseFrom(f, &o.stats.TimedOut)...)
	}
	return out
}

func (o *oracle) flush() (out []int) {
	for len(o.held) > 0 {
		out = append(out, o.releaseAll(o.held[0].flow, &o.stats.Flushed)...)
	}
	return out
}

func (o *oracle) Stats() Stats {
	s := o.stats
	s.HeldPackets, s.HeldBytes = o.sum(nil)
	s.Flows = len(o.flows)
	return s
}

// use finds a flow and moves it to the end.
func (o *oracle) use(key flowcell.FiveTuple) *oracleFlow {
	for i, f := range o.flows {
		if f.key == key {
			o.flows = append(append(o.flows[:i:i], o.flows[i+1:]...), f)
			return f
		}
	}
	return nil
}

// of lists what is held of f in order.
func (o *oracle) of(f *oracleFlow) (list []oracleHeld) {
	for _, k := range o.held {
		if k.flow == f {
			list = append(list, k)
		}
	}
	sort.SliceStable(list, func(i, j int) bool {
		return distance(list[i].seq, f.next) < distance(list[j].seq, f.next)
	})
	return list
}

func (o *oracle) releaseAll(f *oracleFlow, cause *uint64) (out []int) {
	for _, k := range o.of(f) {
		out = append(out, o.deliver(k, cause))
	}
	return out
}

// releaseFrom delivers what begins at or below next, until nothing does.
func (o *oracle) releaseFrom(f *oracleFlow, cause *uint64) (out []int) {
	for list := o.of(f); len(list) > 0 && distance(list[0].seq, f.next) <= 0; list = o.of(f) {
		out = append(out, o.deliver(list[0], cause))
	}
	return out
}

func (o *oracle) deliver(k oracleHeld, cause *uint64) int {
	for i := range o.held {
		if o.held[i].id == k.id {
			o.held = append(o.held[:i:i], o.held[i+1:]...)
			break
		}
	}
	*cause++
	if k.flow.out.reordered(k.seq, k.end) {
		o.stats.DeliveredOutOfOrder++
	}
	if distance(k.end, k.flow.next) > 0 {
		k.flow.next = k.end
	}
	return k.id
}

// sum adds up what is held of f, or of all flows.
func (o *oracle) sum(f *oracleFlow) (packets, bytes int) {
	for _, k := range o.held {
		if f == nil || k.flow == f {
			packets++
			bytes += k.size
		}
	}
	return packets, bytes
}
