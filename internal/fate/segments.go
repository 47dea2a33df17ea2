package fate

import "math/bits"

// Segments remembers by which path each segment went. It is direct-mapped: a new entry
// overwrites its slot. Only evidence is lost by that. A slot takes 8 bytes. Flows are told
// apart by a hash of their five-tuples. It is not safe for concurrent use.
type Segments struct {
	marks []mark
	shift uint8
}

// mark is a segment's latest path.
type mark struct {
	tag  uint32 // of flow and sequence number; its lowest bit is spent
	path uint16
	size uint16 // bytes of payload; 0: nothing is remembered
}

// spent says that an acknowledgement of the segment tells nothing of its path: it was
// sent more than once (Karn & Partridge 1987), or has been acknowledged.
const spent = 1

// NewSegments returns one with room for n segments, rounded up to a power of two.
func NewSegments(n int) *Segments {
	exponent := max(bits.Len(uint(n-1)), 1)
	return &Segments{marks: make([]mark, 1<<exponent), shift: uint8(64 - exponent)}
}

// slot returns where a segment is remembered, and the tag that tells it from others.
func (s *Segments) slot(hash uint64, seq uint32) (*mark, uint32) {
	k := (hash ^ uint64(seq)*0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93
	return &s.marks[k>>(s.shift&63)], uint32(k>>16) &^ spent
}

// is reports whether a mark is that of the segment with a tag.
func (m *mark) is(tag uint32) bool { return m.tag&^spent == tag && m.size > 0 }

// Flow is how far a flow has got, in 16 bytes. The zero value is a flow that has not
// begun.
type Flow struct {
	highest uint32 // sequence number behind everything sent
	probe   uint32 // highest when the last segment was sent again for the first time
	resent  uint32 // sequence number behind what was sent again last
	path    uint16 // that had carried that
	flags   uint8
}

const (
	begun   = 1 << iota
	probed  // probe is set
	running // what is sent again has been so in one piece, by more than one path
)

// Counts is what was sent again, in segments.
type Counts struct {
	Losses  uint64 `json:"losses"`  // segments sent again, each a loss on the path that had carried it
	Unknown uint64 `json:"unknown"` // sent again, but what had carried it was forgotten
	Probes  uint64 `json:"probes"`  // probes of TCP's, which say nothing
	Runs    uint64 `json:"runs"`    // sent again in one piece with what another path had carried, which says nothing either
}

// New takes note that a path carries size bytes of TCP payload from sequence number seq
// on, in segments of step bytes. It is false if the flow has sent as much before: then
// call Again.
func (s *Segments) New(f *Flow, hash uint64, seq, size, step uint32, path int) bool {
	end := seq + size
	if f.flags&begun == 0 {
		f.resent, f.flags = seq-1, begun // where no segment begins
	} else if int32(end-f.highest) <= 0 {
		return false
	}
	f.highest = end
	for ; size > step; seq, size = seq+step, size-step {
		m, tag := s.slot(hash, seq)
		*m = mark{tag, uint16(path), uint16(step)}
	}
	m, tag := s.slot(hash, seq)
	*m = mark{tag, uint16(path), uint16(size)}
	return true
}

// Again takes note that a path carries payload that ends where something was sent
// before. It calls lost with the path of each segment that this shows to be lost.
//
// Two such cases are no losses. One is a single byte at the end: with it TCP asks whether
// a peer lives or its window is open. The other is the last segment when it comes again
// for the first time, if probes says that TCP sends tail loss probes (RFC 8985 §7).
//
// After a timeout TCP sends everything again that is not acknowledged, even what has
// arrived. Where a queue overflows, a row of segments by different paths is lost. So in a
// row of segments that are sent again, only those count that went by the same path as
// the first. A dead path looks different: it makes holes between what others carry.
func (s *Segments) Again(f *Flow, hash uint64, seq, size, step uint32, path int, probes bool, c *Counts, lost func(path int)) {
	end := seq + size
	if end == f.highest && (size == 1 || probes && size == step && !(f.flags&probed != 0 && f.probe == end)) {
		f.probe = end
		f.flags |= probed
		c.Probes++
		if m, tag := s.slot(hash, seq); m.is(tag) {
			m.tag |= spent
		}
		return
	}
	known := false
	for at := seq; at != end; {
		n := min(step, end-at)
		m, tag := s.slot(hash, at)
		if m.is(tag) {
			known = true
			if at != f.resent {
				f.flags &^= running
			} else if m.path != f.path {
				f.flags |= running
			}
			if f.flags&running != 0 {
				c.Runs++
			} else {
				c.Losses++
				lost(int(m.path))
			}
			f.path = m.path
		} else {
			c.Unknown++
		}
		f.resent = at + n
		*m = mark{tag | spent, uint16(path), uint16(n)}
		at += n
	}
	if !known { // perhaps another connection between the same ports
		*f = Flow{highest: end, resent: f.resent, flags: begun}
	}
}
