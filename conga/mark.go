package conga

import "time"

// Mark is what a packet says about congestion: on its own path so far, or, as
// feedback, on a path the other way. CONGA §3.1 has both in every VXLAN header.
// Here there is no such header, and packets take turns.
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
// The ID of a packet that must not be fragmented is the sender's to use (RFC 6864 §4.1); it
// survives a bounce and any decapsulation, costs no byte, and means nothing to hosts and
// switches that know nothing of it. A DSCP of its own, unassigned and queued by Linux like
// 0, tells switches that an ID is a Mark. So only packets whose DSCP is 0 carry one, and
// the receiver restores the 0.
//
// In a flowcell.Number the low six bits are the index of a segment. Here they are never 0,
// which begins a flowcell, and never 63, which is no index, so that no receiver takes a
// Mark for the number of a flowcell. A kernel that cuts a super-segment adds 1 to the ID
// for each of up to 62 segments. With a Tick of 0 that stays within these bits, and Tick
// must then be ignored.
type Mark struct {
	Feedback bool
	Tag      uint8 // below Tags
	Metric   uint8 // at most MaxMetric; the CE of a forward mark
	// Tick is when the packet was sent, by the sender's clock (Table.Tick). It replaces the
	// count of packets that a sender of flowlets otherwise has in the ID.
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

// Put returns the ID of a packet, or of the first segment, that carries m. Fields
// out of range lose their high bits.
func (m Mark) Put() uint16 {
	id := uint16(m.Tag%Tags)<<markTagShift | uint16(m.Metric&MaxMetric)<<markMetricShift | markIndex
	if m.Feedback {
		id |= markFeedback
	}
	return id | uint16(m.Tick>>4&3)<<6 | uint16(m.Tick&15)<<1
}

// ParseMark decodes an ID. Any ID decodes; only the DSCP tells whether it is a
// Mark.
func ParseMark(id uint16) Mark {
	return Mark{
		Feedback: id&markFeedback != 0,
		Tag:      uint8(id>>markTagShift) % Tags,
		Metric:   uint8(id>>markMetricShift) & MaxMetric,
		Tick:     uint8(id>>6)&3<<4 | uint8(id>>1)&15,
	}
}

// Order returns an ID to use in place of m's. Of two packets that were sent at least half
// a tau and at most 16 tau apart, the later one's ID is ahead, as with 16-bit sequence
// numbers. That tells a packet that was sent again, a round trip later, from one that was
// overtaken. The ID begins no flowcell.
func (m Mark) Order() uint16 { return uint16(m.Tick%ticks)<<10 | 1 }

// Tick returns the time as a Mark carries it: in halves of Config.Tau, modulo 64.
func (t *Table) Tick(now time.Duration) uint8 { return uint8(now/(t.config.Tau/2)) % ticks }

// Raise does a switch's part: it returns id with the CE of a forward mark raised to
// metric. All else is unchanged. The caller updates the checksum.
func Raise(id uint16, metric uint8) uint16 {
	ce := uint16(min(metric, MaxMetric)) << markMetricShift
	if id&markFeedback != 0 || id&markMetric >= ce {
		return id
	}
	return id&^markMetric | ce
}
