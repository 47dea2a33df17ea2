package conga

import "time"

// Mark is what a packet says of congestion: its own path's so far, or, in
// reverse, that of a path the other way. CONGA §3.1 has both in every VXLAN
// header; here there is no such header, and packets take turns.
//
// It rides in the ID of the inner IPv4 header of a TCP packet with DF, whose
// DSCP is then MarkDSCP:
//
//	bit  15     0 forward, 1 feedback
//	bits 14..11 LBTag, or the one that the feedback is about
//	bits 10..8  CE, or the metric fed back
//	bits 7..6   Tick, the high bits
//	bit  5      zero
//	bits 4..1   Tick, the low bits
//	bit  0      one
//
// The ID of a packet that must not be fragmented is the sender's to use (RFC
// 6864 §4.1); it survives a bounce and any decapsulation, costs no byte, and
// means nothing to hosts and switches that know nothing of it. A DSCP of its own,
// unassigned and queued by Linux like 0, tells switches that an ID is a Mark; so
// only packets whose DSCP is 0 carry one, and the receiver makes it 0 again.
//
// The low six bits are where others have the index of a segment in a flowcell
// (flowcell.Number). They are never 0, which begins a flowcell, and never 63,
// which is no index, so nobody takes a Mark for the number of a flowcell. A kernel
// that cuts a super-segment adds 1 to the ID for each of up to 62 segments: with a
// Tick of 0 that stays within these bits, and Tick is then not to be looked at.
type Mark struct {
	Feedback bool
	Tag      uint8 // below Tags
	Metric   uint8 // at most MaxMetric; the CE of a forward mark
	// Tick is when it was sent, by the sender's clock (Table.Tick), in place of
	// what the ID would tell: a sender of flowlets else counts its packets in it.
	Tick uint8
}

const (
	// MarkDSCP is the DSCP of packets that carry a Mark: TOS 0x24, and ECN.
	MarkDSCP = 9

	markFeedback = 1 << 15
	markTagShift = 11
	markMetric   = 7 << markMetricShift
	markIndex    = 1

	markMetricShift = 8

	// ticks is how many can be told apart.
	ticks = 1 << 6
)

// Put returns the ID of a packet, or of the first segment, that carries m. What
// is out of range loses its high bits.
func (m Mark) Put() uint16 {
	id := uint16(m.Tag%Tags)<<markTagShift | uint16(m.Metric&MaxMetric)<<markMetricShift | markIndex
	if m.Feedback {
		id |= markFeedback
	}
	return id | uint16(m.Tick>>4&3)<<6 | uint16(m.Tick&15)<<1
}

// ParseMark returns what an ID says. Any ID says something: that it is a Mark
// at all, the DSCP tells.
func ParseMark(id uint16) Mark {
	return Mark{
		Feedback: id&markFeedback != 0,
		Tag:      uint8(id>>markTagShift) % Tags,
		Metric:   uint8(id>>markMetricShift) & MaxMetric,
		Tick:     uint8(id>>6)&3<<4 | uint8(id>>1)&15,
	}
}

// Order is an ID for the packet in place of m's: of two packets the one sent
// later has the one that is ahead, as sequence numbers of 16 bits are, if they were
// sent within 16 tau, and if at least half a tau apart. That is enough to tell what was
// sent again from what was overtaken, a round trip apart. It begins no flowcell.
func (m Mark) Order() uint16 { return uint16(m.Tick%ticks)<<10 | 1 }

// Tick is the time as a Mark has it: in halves of Config.Tau, modulo 64.
func (t *Table) Tick(now time.Duration) uint8 { return uint8(now/(t.config.Tau/2)) % ticks }

// Raise is what a switch does: it returns id with the CE of a forward mark made
// metric if that is larger, all else as it was. The caller mends the checksum.
func Raise(id uint16, metric uint8) uint16 {
	ce := uint16(min(metric, MaxMetric)) << markMetricShift
	if id&markFeedback != 0 || id&markMetric >= ce {
		return id
	}
	return id&^markMetric | ce
}
