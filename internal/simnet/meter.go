package simnet

import (
	"encoding/binary"
	"fmt"
	"time"

	"weft/conga"
	"weft/encap"
)

// Meter is what the ports of all switches do to what they send, as the programs
// of Linux switches do (package fabric). The queue is the port's own: there is no
// need to guess it.
type Meter struct {
	// ECNBytes is the queue, in bytes with FrameOverhead, above which packets
	// whose transport understands it are marked CE, in the outermost header; 0:
	// none are.
	ECNBytes int
	// Tau is the time constant of the ports' DRE (CONGA §3.2), which raises the
	// CE field of packets that carry one (conga.Mark); 0: the time of 133 full
	// packets at the port's rate, at least 160 µs (CONGA §3.6).
	Tau time.Duration
	// QCMUnit is how many bytes of queue add 1 to the congestion metric of a
	// passing probe (Luopan §3.1), rounded up; 0 means encap.QCMUnit.
	QCMUnit int
}

func (m *Meter) validate() error {
	switch {
	case m == nil:
	case m.ECNBytes < 0:
		return fmt.Errorf("simnet: Meter.ECNBytes is %d, must be a queue in bytes, or 0 for no marks", m.ECNBytes)
	case m.Tau < 0 || m.Tau > time.Hour:
		return fmt.Errorf("simnet: Meter.Tau is %v, must be from 0 to an hour", m.Tau)
	case m.QCMUnit < 0:
		return fmt.Errorf("simnet: Meter.QCMUnit is %d, must be bytes, or 0 for %d", m.QCMUnit, encap.QCMUnit)
	}
	return nil
}

// meter is a port's.
type meter struct {
	Meter
	dre conga.DRE
}

// fit gives a port a meter.
func (m *Meter) fit(p *port) {
	if m == nil {
		return
	}
	p.meter = &meter{Meter: *m}
	if p.meter.QCMUnit == 0 {
		p.meter.QCMUnit = encap.QCMUnit
	}
	p.meter.setRate(p.rate)
}

// setRate follows the port's. What the DRE has measured is forgotten.
func (m *meter) setRate(bits int64) {
	tau := m.Tau
	if tau == 0 {
		tau = max(160*time.Microsecond, time.Duration(133*1500*8/float64(bits)*float64(time.Second)))
	}
	m.dre = conga.NewDRE(tau, float64(bits))
}

// measure lets the port's meter, if it has one, write into a packet that has just
// come into the queue. The packet itself is no congestion to it.
func (p *port) measure(b []byte, at time.Duration) {
	m := p.meter
	if m == nil {
		return
	}
	size := len(b) + FrameOverhead
	queue := p.backlog(at) - size
	encap.AddQueue(b, (queue+m.QCMUnit-1)/m.QCMUnit)
	if m.ECNBytes > 0 && queue > m.ECNBytes && markCE(b) {
		p.stats.Marked++
	}
	m.dre.Add(size, at)
	if raise(b, m.dre.Metric(at)) {
		p.stats.Raised++
	}
}

// markCE sets the congestion mark of a packet whose transport understands it
// (RFC 3168 §5), and reports whether it did.
func markCE(b []byte) bool {
	switch {
	case len(b) >= 20 && b[0]>>4 == 4:
		if !mayMark(encap.ECN(b[1] & 3)) {
			return false
		}
		setField(b, 0, binary.BigEndian.Uint16(b)|uint16(encap.CE))
		return true
	case len(b) >= 40 && b[0]>>4 == 6:
		if !mayMark(encap.ECN(b[1] >> 4 & 3)) {
			return false
		}
		b[1] |= byte(encap.CE) << 4
		return true
	}
	return false
}

func mayMark(e encap.ECN) bool { return e == encap.ECT0 || e == encap.ECT1 }

// raise lifts the CE field of a packet that carries one to the port's metric, and
// reports whether it was lower.
func raise(b []byte, metric uint8) bool {
	b, ok := innermost(b)
	if !ok || b[1]>>2 != conga.MarkDSCP || b[9] != protocolTCP {
		return false
	}
	id := binary.BigEndian.Uint16(b[4:])
	mark := conga.ParseMark(id)
	if mark.Feedback || mark.Metric >= metric {
		return false
	}
	// A kernel that cut a super-segment has counted on behind the mark.
	index := id - mark.Put()
	mark.Metric = metric
	setField(b, 4, mark.Put()+index)
	return true
}

// setField replaces 16 bits of an IPv4 header and mends its checksum (RFC 1624
// §3).
func setField(b []byte, at int, value uint16) {
	old := binary.BigEndian.Uint16(b[at:])
	binary.BigEndian.PutUint16(b[at:], value)
	s := uint32(^binary.BigEndian.Uint16(b[10:])) + uint32(^old) + uint32(value)
	s = s>>16 + s&0xffff
	binary.BigEndian.PutUint16(b[10:], ^uint16(s>>16+s))
}

// innermost returns the IPv4 packet behind the outer headers that encap knows, of
// which there are at most two.
func innermost(b []byte) (inner []byte, ok bool) {
	for range 3 {
		switch {
		case len(b) >= 20 && b[0]>>4 == 4:
			header := int(b[0]&0xf) * 4
			if b[9] != protocolIPIP {
				return b, true
			}
			if header < 20 || header > len(b) {
				return nil, false
			}
			b = b[header:]
		case len(b) >= 40 && b[0]>>4 == 6 && b[6] == protocolIPIP:
			b = b[40:]
		default:
			return nil, false
		}
	}
	return nil, false
}

// Protocol numbers of IP, and next headers.
const (
	protocolIPIP = 4
	protocolTCP  = 6
	protocolIPv6 = 41
)
