package dataplane

import (
	"net/netip"
	"time"

	"weft/flowcell"
	"weft/internal/fate"
)

// Sizes of the tables of segments. The tables are direct-mapped: a new entry overwrites
// its slot. Only evidence is lost.
const (
	markedFlows    = 1 << 14 // 320 KB
	markedSegments = 1 << 16 // 512 KB, 90 MB of data under way
	// MaxTallied is the number of destinations for which packets are counted by path at
	// the same time. Packets to other destinations are not counted until the next Report.
	MaxTallied = 256
	// maxLosses is how many losses wait to be reported. Beyond it they are only counted.
	maxLosses = 1024
)

// evidence finds out by which paths TCP segments were lost. A segment that is sent again
// was lost, and a table says by which path it had gone. Evidence reads only outgoing
// packets, so it serves the kernel's TCP and netstack's alike. It belongs to egress and
// is guarded by its lock.
//
// A needless retransmission counts as a loss. The reader of the counts must tolerate a
// few of them. Two frequent kinds do not count: TCP's probes, and rows of segments that
// are sent again in one piece (fate.Segments.Again).
type evidence struct {
	seed     uint64
	probes   bool // TCP sends tail loss probes (RFC 8985 §7)
	flows    []flowMark
	segments *fate.Segments
	heeding  []*heeding // are told of losses, too
	unread   bool       // nobody else asks for it
	tallied  []*pair    // with counts
	tallies  [][]uint32
	losses   []loss
	stats    EvidenceStats
}

// EvidenceStats counts what retransmissions say of paths.
type EvidenceStats struct {
	fate.Counts
	Uncounted  uint64 `json:"uncounted"`  // segments to destinations above MaxTallied
	Unreported uint64 `json:"unreported"` // losses that came faster than they were reported
}

// flowMark is how far a flow has got.
type flowMark struct {
	tag uint32 // of the flow
	fate.Flow
}

// loss is of one segment.
type loss struct {
	host netip.Addr
	path uint16
}

func newEvidence(seed uint64, probes bool) *evidence {
	return &evidence{
		seed: seed, probes: probes,
		flows:    make([]flowMark, markedFlows),
		segments: fate.NewSegments(markedSegments),
		losses:   make([]loss, 0, maxLosses),
	}
}

// sent takes note that a path carries a TCP packet with payload, in segments of mss bytes,
// or in one if mss is 0.
func (v *evidence) sent(p *pair, via *pathOut, pkt *flowcell.Packet, mss int) {
	size := uint32(pkt.Payload)
	step, segments := size, uint32(1)
	if mss > 0 && uint32(mss) < size {
		step = uint32(mss)
		segments = (size + step - 1) / step
	}
	if via.index < len(p.tally) {
		p.tally[via.index] += segments
	} else if !v.unread {
		v.start(p, via, segments)
	}
	hash := pkt.Flow.Hash(v.seed)
	f := &v.flows[hash>>50]
	if f.tag != uint32(hash) {
		*f = flowMark{tag: uint32(hash)}
	}
	if !v.segments.New(&f.Flow, hash, pkt.Seq, size, step, via.index) {
		v.segments.Again(&f.Flow, hash, pkt.Seq, size, step, via.index, v.probes, &v.stats.Counts, func(path int) { v.lost(p, &pkt.Flow, path) })
	}
}

// note tells the policy, and whoever looks for losses, by which path a packet goes.
func (e *Egress) note(o *Outgoing, pkt *flowcell.Packet, segments int, now time.Duration) {
	via := o.decision.via
	if l := o.lane; l.aware != nil && via != nil && (pkt.Payload > 0 || l.paths.spray && !pkt.IsTCP()) {
		payload := int(pkt.Payload)
		l.aware.sent(o.pair, via.index, payload+segments*(pkt.Length-payload+via.header.Overhead()), now)
	}
	// The path is not known here if the uplink's program finds it. A destination that gets
	// only acknowledgements or datagrams counts as active, too.
	switch v, p := e.evidence, o.pair; {
	case v == nil || p.direct:
	case via == nil || o.below() || pkt.Payload <= 0 || !pkt.IsTCP():
		v.touch(p)
	default:
		v.sent(p, via, pkt, o.MSS)
	}
}

func (v *evidence) lost(p *pair, flow *flowcell.FiveTuple, path int) {
	for _, h := range v.heeding {
		h.lost(flow, path)
	}
	switch {
	case v.unread:
	case len(v.losses) == cap(v.losses):
		v.stats.Unreported++
	default:
		v.losses = append(v.losses, loss{p.host, uint16(path)})
	}
}

// start begins to count what is sent to a pair. segments are what has been sent
// already.
func (v *evidence) start(p *pair, via *pathOut, segments uint32) {
	if v.touch(p); via.index < len(p.tally) {
		p.tally[via.index] = segments
	} else {
		v.stats.Uncounted += uint64(segments)
	}
}

// touch begins to count what is sent to a pair, unless there are too many.
func (v *evidence) touch(p *pair) {
	if v.unread || p.tally != nil || len(v.tallied) == MaxTallied {
		return
	}
	n := p.group.Count()
	if last := len(v.tallies) - 1; last >= 0 && cap(v.tallies[last]) >= n {
		p.tally = v.tallies[last][:n]
		v.tallies = v.tallies[:last]
	} else {
		p.tally = make([]uint32, n)
	}
	v.tallied = append(v.tallied, p)
}
