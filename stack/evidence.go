package stack

import (
	"weft/flowcell"
	"weft/topology"
)

// Bounds of what is remembered of segments: the tables are direct-mapped, a
// newcomer takes the place of whom it meets there. What is overwritten is lost as
// evidence, and for nothing else.
const (
	markedFlows    = 1 << 14 // 320 KB
	markedSegments = 1 << 16 // 512 KB, 90 MB of data under way
	// maxTallied is for how many destinations it is counted at once what goes by
	// which path. More than that send uncounted until the counts are next taken.
	maxTallied = 256
	// maxLosses is how many losses wait to be reported; more are counted only.
	maxLosses = 1024
)

// evidence finds out by which paths TCP segments were lost: one that is sent
// again was, and a table tells the path that had carried it. It reads nothing
// but what is sent, so it serves the kernel's TCP as well as netstack's. It
// belongs to egress and is guarded by its lock.
//
// A retransmission in vain is taken for a loss: what looks at the counts must
// stand a few. Two kinds that are many are not: probes, see sent, and what is
// sent again in one piece, see again.
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

// sent takes note that a path carries size bytes of TCP payload from sequence
// number seq on, in segments of mss, or in one if that is 0.
//
// Sent again is what ends where has been sent before. Of that, these are no
// losses: a single byte at the end, with which TCP asks whether a peer lives or
// its window is open; and the last segment when it comes again for the first
// time, where TCP may do that to see whether it has been lost.
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

// observe takes note of the TCP payload that takes a course: up to size bytes, in
// segments of mss, from an offset in a packet. Where the uplink's program finds
// the path, nobody knows here which it is. To whom nothing but acknowledgements go,
// and datagrams, the paths matter, too.
func (e *egress) observe(p *pair, pkt *flowcell.Packet, c course, offset, size, mss int) {
	size = min(size, int(pkt.Payload)-offset)
	switch {
	case p.direct:
	case c.via == nil && p.group == nil:
	case c.via == nil || e.uplink || size <= 0 || !pkt.IsTCP():
		e.evidence.touch(p)
	default:
		e.evidence.sent(p, c.via, &pkt.Flow, pkt.Seq+uint32(offset), uint32(size), mss)
	}
}

// again takes note of segments that are sent again.
//
// After a timeout TCP sends everything again that it has no word of, what has
// arrived, too; and where a queue overflows, a row of segments is lost by
// whatever paths. So of segments that are sent again one right behind the other,
// only those count that the first one's path had carried. A dead path makes holes
// between what others carry.
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

// mark is where a segment's path is remembered, and how it is told from others.
func (v *evidence) mark(hash uint64, seq uint32) (*segmentMark, uint32) {
	k := (hash ^ uint64(seq)*0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93
	return &v.segments[k>>48], uint32(k>>16) | 1
}

// start begins to count what is sent to a pair, with so many segments.
func (v *evidence) start(p *pair, via *pathOut, segments uint32) {
	if v.touch(p); via.index < len(p.tally) {
		p.tally[via.index] = segments
	} else {
		v.stats.Uncounted += uint64(segments)
	}
}

// touch begins to count what is sent to a pair, unless there are too many.
func (v *evidence) touch(p *pair) {
	if p.tally != nil || len(v.tallied) == maxTallied {
		return
	}
	n := max(p.group.numbers, len(p.group.out))
	if last := len(v.tallies) - 1; last >= 0 && cap(v.tallies[last]) >= n {
		p.tally = v.tallies[last][:n]
		v.tallies = v.tallies[:last]
	} else {
		p.tally = make([]uint32, n)
	}
	v.tallied = append(v.tallied, p)
}
