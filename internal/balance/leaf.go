package balance

import (
	"math/bits"
	"time"

	"weft/conga"
)

// Places and times of a Leaf.
const (
	LeafFlows     = 1 << 16     // places of flows, which share them
	MaxLeafRacks  = 4096        // others than the switch's own
	FlowcellBytes = 64 << 10    // of IP packets
	leafWindow    = 1 << 22     // bytes in flight that count as a proof
	LeafKeep      = time.Second // without a packet: a flowcell has ended, and the flow proves nothing
	NoPath        = 1<<32 - 1
)

// LeafFlow is a place of the table of flows, struct flow of fabric/bpf/leaf.c.
type LeafFlow struct {
	Who   uint32 // who has it
	Rack  uint32 // where it leads
	Last  uint64 // ns: when its latest packet came; 0: the place is free
	Bytes uint32 // of the flowcell
	Path  uint32

	// CONGA: what an acknowledgement may say, if Seen is 1.
	Low, Highest uint32
	Seen         uint32
	_            uint32
}

// LeafTo is a row of the Congestion-To table (CONGA §3.3), struct outward.
type LeafTo struct {
	At     [conga.Tags]uint64 // ns
	Metric [conga.Tags]uint8
}

// LeafFrom is a row of the Congestion-From table, struct inward.
type LeafFrom struct {
	At          [conga.Tags]uint64 // ns
	CE, Fed     [conga.Tags]uint8
	Known, News uint32 // a bit for each tag
	Next        uint32
	Turn        uint32 // 1: the latest mark was a report
}

// Leaf decides as the program of fabric/bpf/leaf.c on one CPU does, for all hosts of a rack.
// Times are in ns of any clock, and not 0.
type Leaf struct {
	Rule   Rule
	Seed   uint64
	Age    time.Duration // CONGA: how long a report has full weight
	Engine Engine

	LeastExpiry time.Duration    // Luopan, without an expiry in the rule
	Local       [LeafUplinks]DRE // CONGA: by uplink modulo LeafUplinks
	Flows       map[uint32]LeafFlow
	To          map[uint32]LeafTo
	From        map[uint32]LeafFrom
	Round       map[uint32]LeafSamples

	Begun, Evicted, Shared, Guided, Heard, Unproven uint64
}

// NewLeaf returns a Leaf that knows nothing.
func NewLeaf(r Rule, seed uint64, age time.Duration) *Leaf {
	return &Leaf{Rule: r, Seed: seed, Age: age, LeastExpiry: LeastExpiry(0), Flows: make(map[uint32]LeafFlow),
		To: make(map[uint32]LeafTo), From: make(map[uint32]LeafFrom), Round: make(map[uint32]LeafSamples)}
}

// Place is where a flow is, and what it is called there.
func (l *Leaf) Place(p Packet) (place, who uint32) {
	pair := mix(l.Seed ^ (uint64(p.Src)<<32 | uint64(p.Dst)))
	hash := mix(pair ^ (uint64(p.Protocol)<<32 | uint64(p.Ports)))
	return uint32(hash) % LeafFlows, uint32(hash >> 32)
}

// Choose returns the path of a packet of so many bytes to a rack that has one at least. A flow
// whose place another one has takes the path there, if it leads to its rack (CONGA §3.4).
func (l *Leaf) Choose(r *LeafRack, p Packet, bytes uint32, now uint64) (path uint32) {
	keep := LeafKeep
	if l.Rule.Kind == CONGA {
		keep = l.Rule.Gap
	}
	place, who := l.Place(p)
	f := l.Flows[place]
	lives := f.Last != 0 && now-f.Last <= uint64(keep)
	leads := f.Last != 0 && f.Rack == r.Number && r.Live(f.Path)
	own := f.Who == who && f.Rack == r.Number
	switch {
	case !leads || !lives || l.Rule.Kind == Luopan && f.Bytes+bytes > uint32(l.Rule.Flowcell):
		l.Begun++
		if lives && !leads && !own {
			l.Evicted++
		}
		last := uint32(NoPath)
		if leads && own {
			last = f.Path
		}
		if !own {
			f.Seen = 0
		}
		f.Who, f.Rack, f.Path, f.Bytes = who, r.Number, l.path(r, last, now), 0
	case !own:
		l.Shared++
	}
	f.Bytes += bytes
	f.Last = now
	l.Flows[place] = f
	if l.Rule.Kind == CONGA {
		l.Local[r.Uplink[r.Tag[f.Path]]].Add(bytes, now)
	}
	return f.Path
}

func (l *Leaf) path(r *LeafRack, last uint32, now uint64) uint32 {
	if l.Rule.Kind == CONGA {
		return l.leastBusy(r, last, now)
	}
	return l.leastSampled(r, now)
}

// leastBusy is CONGA's choice (§3.5): the least max(local, remote). Among equals it is the
// flow's latest path, or a random one.
func (l *Leaf) leastBusy(r *LeafRack, last uint32, now uint64) uint32 {
	least, best, equals := uint8(conga.MaxMetric+1), uint32(0), uint32(0)
	for tag := range conga.Tags {
		paths := r.Start[tag+1] - r.Start[tag]
		if paths == 0 {
			continue
		}
		m := l.metric(r, tag, now)
		if m < least {
			least, best, equals = m, 0, 0
		}
		if m == least {
			best |= 1 << tag
			equals += paths
		}
	}
	if last != NoPath && best>>r.Tag[last]&1 != 0 {
		return last
	}
	n := l.Engine.below(equals)
	for ; ; best &= best - 1 {
		tag := bits.TrailingZeros32(best)
		if paths := r.Start[tag+1] - r.Start[tag]; n >= paths {
			n -= paths
			continue
		}
		return uint32(r.Order[r.Start[tag]+n])
	}
}

// metric is max(local, remote) of a tag: the local one that of its uplink, the remote one aged
// as conga.Table does.
func (l *Leaf) metric(r *LeafRack, tag int, now uint64) uint8 {
	row := l.To[r.Number]
	m := row.Metric[tag]
	if over := time.Duration(now-row.At[tag]) - l.Age; m > 0 && over > 0 {
		m -= uint8(min(1+over*8/l.Age, time.Duration(m)))
	}
	return max(m, l.Local[r.Uplink[tag]].Metric(now))
}

// Mark is the mark of a packet to a rack by a path of a tag: the tag or, in every other
// packet, a report if there is one (CONGA §3.3).
func (l *Leaf) Mark(rack uint32, tag uint8, now uint64) conga.Mark {
	row := l.From[rack]
	row.Turn ^= 1
	if row.Turn == 1 {
		if tag, metric, ok := row.report(now, uint64(l.Age)); ok {
			l.From[rack] = row
			return conga.Mark{Feedback: true, Tag: tag, Metric: metric}
		}
		row.Turn = 0
	}
	l.From[rack] = row
	return conga.Mark{Tag: tag}
}

// report is conga.Table.NextFeedback.
func (f *LeafFrom) report(now, age uint64) (tag, metric uint8, ok bool) {
	changed := uint32(0)
	for news := f.News; news != 0; news &= news - 1 {
		i := bits.TrailingZeros32(news)
		switch {
		case int64(now-f.At[i]) > int64(age):
			f.News &^= 1 << i
		case f.Known>>i&1 == 0 || f.Fed[i] != f.CE[i]:
			changed |= 1 << i
		}
	}
	from := changed
	if from == 0 {
		from = f.News
	}
	if from == 0 {
		return 0, 0, false
	}
	for tag = uint8(f.Next); from>>tag&1 == 0; tag = (tag + 1) % conga.Tags {
	}
	f.Fed[tag] = f.CE[tag]
	f.Known |= 1 << tag
	f.News &^= 1 << tag
	f.Next = uint32(tag+1) % conga.Tags
	return tag, f.CE[tag], true
}
