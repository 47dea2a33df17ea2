package daemon

import (
	"fmt"
	"slices"
)

// Bounds of super_segment_bytes: the longest that has a length in its IP header, and the
// kernel's GSO_MAX_SIZE.
const (
	minSupers = 65536
	maxSupers = 524280
)

// asksSupers reports whether the configuration asks for more than 64 KB at once.
func (c *Config) asksSupers() bool { return c.SuperSegmentBytes > minSupers }

// longSupers reports whether TCP is to hand over so much. What mode and policy auto have become
// may not have it.
func (c *Config) longSupers() bool { return c.asksSupers() && c.offloads() && c.numbersAtUplink() }

func (c *Config) checkSupers() error {
	const key = "super_segment_bytes"
	if err := c.between(key, c.SuperSegmentBytes, minSupers, maxSupers); err != nil || !c.asksSupers() {
		return err
	}
	switch {
	case !c.offloads():
		return c.lines.Errorf(key, "is %d: in mode gateway what arrives passes through weft, which takes at most %d bytes at once; use mode: offload, or leave it out", c.SuperSegmentBytes, minSupers)
	case !slices.Contains(c.Encapsulation, EncapIPIP):
		return c.lines.Errorf(key, "is %d: an outer IPv6 header says how long a packet is, up to 64 KB; add ipip to encapsulation, or leave it out", c.SuperSegmentBytes)
	case !c.numbersAtUplink() && !c.policy().Adapts:
		return c.lines.Errorf(key, "is %d: policy %s has no flowcells, of which such a super-segment is one; use presto, or leave it out", c.SuperSegmentBytes, c.Policy)
	}
	return nil
}

// superLosses finds out whether super-segments of more than 64 KB get lost. Where all do, TCP
// sends each of them again in short packets, and all its bytes twice. Where one path of several
// loses them, it is that path's part. Losses of congestion are far fewer, and those of a path
// that fails are over when its packets take others. It is pure.
type superLosses struct {
	sent, bytes, again uint64 // at the beginning of the interval
	bad                int    // intervals, one after the other
}

const (
	// An interval ends when so many were sent, or when fewSupers were and as many bytes again.
	manySupers, fewSupers = 32, 4
	// mostAgain is the part of bytes, as 1/mostAgain, that is sent again at most where nothing
	// is wrong.
	mostAgain = 6
	// badIntervals is after how many it is no chance.
	badIntervals = 3
)

// look takes the counters: super-segments sent, bytes of TCP in them, and bytes that their flows
// have sent again. It returns why they are held for lost, "" if they are not.
func (s *superLosses) look(sent, bytes, again uint64) (why string) {
	if sent < s.sent || bytes < s.bytes || again < s.again { // counters of another program
		*s = superLosses{}
	}
	n, of, resent := sent-s.sent, bytes-s.bytes, again-s.again
	if n < fewSupers || n < manySupers && resent < of {
		return "" // the interval goes on
	}
	*s = superLosses{sent, bytes, again, s.bad + 1}
	if resent*mostAgain < of {
		s.bad = 0
	}
	if s.bad < badIntervals {
		return ""
	}
	return fmt.Sprintf("of %d super-segments above 64 KB, %d KB, flows sent %d KB again", n, of>>10, resent>>10)
}
