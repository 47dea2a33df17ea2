package dataplane

import (
	"time"

	"weft/flowcell"
	"weft/topology"
)

// Bounds of what is remembered of segments. The tables are direct-mapped; a new entry
// overwrites its slot. Only evidence is lost by that.
const (
	markedFlows    = 1 << 14 // 320 KB
	markedSegments = 1 << 16 // 512 KB, 90 MB of data under way
	// MaxTallied is for how many destinations packets are counted by path at once. What
	// goes to others is not counted until the next Report.
	MaxTallied = 256
	// maxLosses is how many losses wait to be reported. Beyond it they are only counted.
	maxLosses = 1024
)

// evidence finds out by which paths TCP segments were lost. A segment that is sent
// again was lost, and a table says by which path it had gone. Evidence reads only
// what is sent, so it serves the kernel's TCP and netstack's alike. It belongs to
// egress and is guarded by its lock.
//
// A needless retransmission counts as a loss. Whoever reads the counts must stand a
// few of them. Two frequent kinds do not count: TCP's probes (see sent), and rows
// that are sent again in one piece (see again).
type evidence struct {
	seed     uint64
	probes   bool // TCP sends tail loss probes (RFC 8985 §7)
	flows    []flowMark
	segments []segmentMark
	tallied  []*pair // with counts
	tallies  [][]uint32
	losses   []loss
	stats    EvidenceStats
}

// EvidenceStats counts what retransmissions have told of paths.
type EvidenceStats struct {
	Losses     uint64 `json:"losses"`     // segments sent again, each a loss on the path that had carried it
	Unknown    uint64 `json:"unknown"`    // sent again, but what had carried it was forgotten
	Probes     uint64 `json:"probes"`     // probes of TCP's, which say nothing
	Runs       uint64 `json:"runs"`       // sent again in one piece with what another path had carried, which says nothing either
	Uncounted  uint64 `json:"uncounted"`  // segments of destinations beyond those that are counted at once
	Unreported uint64 `json:"unreported"` // losses that came too fast
}

// flowMark is how far a flow has got.
type flowMark struct {
	tag     uint32 // of the flow
	highest uint32 // sequence number behind everything sent
	probe   uint32 // highest when the last segment was sent again for the first time
	resent  uint32 // sequence number behind what was sent again last
	path    uint16 // that had carried that
	probed  bool
	running bool // what is sent again has been so in one piece, by more than one path
}

// segmentMark is a segment's latest path.
type segmentMark struct {
	tag  uint32 // of flow and sequence number; 0: none
	path uint16
}

// loss is of one segment.
type loss struct {
	host topology.NodeID
	path uint16
}

func newEvidence(seed uint64, probes bool) *evidence {
	return &evidence{
		seed: seed, probes: probes,
		flows:    make([]flowMark, markedFlows),
		segments: make([]segmentMark, markedSegments),
		losses:   make([]loss, 0, maxLosses),
	}
}

// sent takes note that a path carries size bytes of TCP payload from sequence number
// seq on, in segments of mss, or in one if mss is 0.
//
// Payload that ends where something was sent before is sent again. Two such cases are
// no losses. One is a single byte at the end: with it TCP asks whether a peer lives
// or its window is open. The other is the last segment when it comes again for the
// first time, if TCP sends tail loss probes.
func (v *evidence) sent(p *pair, via *pathOut, flow *flowcell.FiveTuple, seq, size uint32, mss int) {
	step, segments := size, uint32(1)
	if mss > 0 && uint32(mss) < size {
		step = uint32(mss)
		segments = (size + step - 1) / step
	}
	if via.index < len(p.tally) {
		p.tally[via.index] += segments
	} else {
		v.start(p, via, segments)
	}
	hash := flow.Hash(v.seed)
	f := &v.flows[hash>>50]
	end := seq + size
	if f.tag != uint32(hash) || int32(end-f.highest) > 0 {
		if f.tag != uint32(hash) {
			*f = flowMark{tag: uint32(hash)}
		}
		f.highest = end
		for at := seq; at != end; at += min(step, end-at) {
			m, tag := v.mark(hash, at)
			*m = segmentMark{tag, uint16(via.index)}
		}
		return
	}
	if end == f.highest && (size == 1 || v.probes && size == step && !(f.probed && f.probe == end)) {
		f.probe, f.probed = end, true
		v.stats.Probes++
		return
	}
	v.again(p, via, f, hash, seq, end, step)
}

// note tells the policy, and whoever looks for losses, by which path a packet goes.
func (e *Egress) note(o *Outgoing, pkt *flowcell.Packet, segments int, now time.Duration) {
	via := o.decision.via
	if l := o.lane; l.aware != nil && via != nil && (pkt.Payload > 0 || l.paths.spray && !pkt.IsTCP()) {
		payload := int(pkt.Payload)
		l.aware.sent(o.pair, via.index, payload+segments*(pkt.Length-payload+via.header.Overhead()), now)
	}
	if e.evidence != nil {
		e.observe(o, pkt, via)
	}
}

// observe takes note of a packet that takes a path. The path is not known here if the
// uplink's program finds it. A destination that gets only
// acknowledgements or datagrams counts as active, too.
func (e *Egress) observe(o *Outgoing, pkt *flowcell.Packet, via *pathOut) {
	switch p := o.pair; {
	case p.direct:
	case via == nil || o.lane.uplink || pkt.Payload <= 0 || !pkt.IsTCP():
		e.evidence.touch(p)
	default:
		e.evidence.sent(p, via, &pkt.Flow, pkt.Seq, uint32(pkt.Payload), o.MSS)
	}
}

// again takes note of segments that are sent again.
//
// After a timeout TCP sends everything again that is not acknowledged, even what has
// arrived. Where a queue overflows, a row of segments by different paths is lost. So
// in a row of segments that are sent again, only those count that went by the same
// path as the first. A dead path looks different: it makes holes between what others
// carry.
func (v *evidence) again(p *pair, via *pathOut, f *flowMark, hash uint64, seq, end, step uint32) {
	known := false
	for at := seq; at != end; at += min(step, end-at) {
		m, tag := v.mark(hash, at)
		if m.tag == tag {
			known = true
			if at != f.resent {
				f.running = false
			} else if m.path != f.path {
				f.running = true
			}
			if f.running {
				v.stats.Runs++
			} else {
				v.lost(p, m.path)
			}
			f.path = m.path
		} else {
			v.stats.Unknown++
		}
		f.resent = at + min(step, end-at)
		*m = segmentMark{tag, uint16(via.index)}
	}
	if !known { // perhaps another connection between the same ports
		*f = flowMark{tag: f.tag, highest: end, resent: f.resent}
	}
}

func (v *evidence) lost(p *pair, path uint16) {
	v.stats.Losses++
	if len(v.losses) == cap(v.losses) {
		v.stats.Unreported++
		return
	}
	v.losses = append(v.losses, loss{p.host, path})
}

// mark returns the slot in which a segment's path is remembered, and the tag that
// tells the segment from others.
func (v *evidence) mark(hash uint64, seq uint32) (*segmentMark, uint32) {
	k := (hash ^ uint64(seq)*0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93
	return &v.segments[k>>48], uint32(k>>16) | 1
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
	if p.tally != nil || len(v.tallied) == MaxTallied {
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
