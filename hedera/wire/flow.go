package wire

import (
	"encoding/binary"
	"math"
	"net/netip"
	"time"

	"weft/flowcell"
)

// Flow is an elephant, as the node measures it at which it begins.
type Flow struct {
	Tuple flowcell.FiveTuple
	Rate  uint64 // bits a second
}

// Report is elephants. It need not be all of a node's: a flow that is reported no more
// is forgotten after some time.
type Report struct {
	Flows []Flow
}

// Placement says which path a flow takes.
type Placement struct {
	Tuple flowcell.FiveTuple
	// Path is the number of the path in the topology.PathSet of the flow's two ends, without
	// failures.
	Path int
	// Via is the address of the switch at which the path bounces: PathSet.Addr. A node whose
	// path of that number has another one has another topology than the scheduler, and must
	// not use the placement.
	Via netip.Addr
	// For is how long it counts from now on. 0 withdraws the flow's placement.
	For time.Duration
}

// MaxPath is the highest number of a path that fits a message.
const MaxPath = math.MaxUint16

// maxFor is the longest time that fits a message.
const maxFor = math.MaxUint32 * time.Millisecond

// Flags of an entry.
const (
	tuple6 = 1 << 0 // the five-tuple is of IPv6
	via6   = 1 << 1 // Via is
)

// appendTuple appends what flows and placements begin with: flags, protocol, ports.
func appendTuple(b []byte, t flowcell.FiveTuple, flags byte) []byte {
	if t.Src.Is6() || t.Dst.Is6() {
		flags |= tuple6
	}
	b = append(b, flags, t.Proto)
	b = binary.BigEndian.AppendUint16(b, t.SrcPort)
	return binary.BigEndian.AppendUint16(b, t.DstPort)
}

func appendAddr(b []byte, a netip.Addr, six bool) []byte {
	if six {
		x := a.As16()
		return append(b, x[:]...)
	}
	x := a.As4()
	return append(b, x[:]...)
}

// appendFlow appends a flow in 22 bytes (IPv4) or 46.
func appendFlow(b []byte, f Flow) []byte {
	six := f.Tuple.Src.Is6() || f.Tuple.Dst.Is6()
	b = appendTuple(b, f.Tuple, 0)
	b = binary.BigEndian.AppendUint64(b, f.Rate)
	b = appendAddr(b, f.Tuple.Src.IP(), six)
	return appendAddr(b, f.Tuple.Dst.IP(), six)
}

// appendPlacement appends a placement in 24 to 60 bytes.
func appendPlacement(b []byte, p Placement) []byte {
	six := p.Tuple.Src.Is6() || p.Tuple.Dst.Is6()
	var flags byte
	if p.Via.Is6() {
		flags |= via6
	}
	b = appendTuple(b, p.Tuple, flags)
	b = binary.BigEndian.AppendUint16(b, uint16(p.Path))
	b = binary.BigEndian.AppendUint32(b, uint32(min(max(p.For, 0), maxFor)/time.Millisecond))
	b = appendAddr(b, p.Tuple.Src.IP(), six)
	b = appendAddr(b, p.Tuple.Dst.IP(), six)
	return appendAddr(b, p.Via, p.Via.Is6())
}

// sizes of the parts of an entry in bytes.
const (
	tupleSize = 6
	flowSize  = tupleSize + 8
	placeSize = tupleSize + 6
)

func (f *Flow) size() int { return flowSize + 2*addrSize(f.Tuple.Src.Is6() || f.Tuple.Dst.Is6()) }

func (p *Placement) size() int {
	return placeSize + 2*addrSize(p.Tuple.Src.Is6() || p.Tuple.Dst.Is6()) + addrSize(p.Via.Is6())
}

func addrSize(six bool) int {
	if six {
		return 16
	}
	return 4
}

// nextTuple reads a five-tuple whose addresses are at b[at:].
func nextTuple(b []byte, at int) (t flowcell.FiveTuple, end int, err error) {
	six := b[0]&tuple6 != 0
	n := addrSize(six)
	if len(b) < at+2*n {
		return t, 0, RejectTruncated
	}
	t = flowcell.FiveTuple{Proto: b[1], SrcPort: binary.BigEndian.Uint16(b[2:]), DstPort: binary.BigEndian.Uint16(b[4:])}
	if six {
		t.Src, t.Dst = flowcell.AddressFrom16([16]byte(b[at:])), flowcell.AddressFrom16([16]byte(b[at+n:]))
		// A five-tuple of two mapped IPv4 addresses has a shorter form, and of one makes no sense.
		if !t.Src.Is6() || !t.Dst.Is6() {
			return t, 0, RejectTrailing
		}
	} else {
		t.Src, t.Dst = flowcell.AddressFrom4([4]byte(b[at:])), flowcell.AddressFrom4([4]byte(b[at+n:]))
	}
	return t, at + 2*n, nil
}

// nextFlow reads a flow and returns what follows it.
//
// Errors: RejectTruncated, RejectTrailing.
func nextFlow(b []byte) (f Flow, rest []byte, err error) {
	switch {
	case len(b) < flowSize:
		return f, nil, RejectTruncated
	case b[0]&^tuple6 != 0:
		return f, nil, RejectTrailing
	}
	f.Rate = binary.BigEndian.Uint64(b[tupleSize:])
	t, end, err := nextTuple(b, flowSize)
	if err != nil {
		return f, nil, err
	}
	f.Tuple = t
	return f, b[end:], nil
}

// nextPlacement reads a placement and returns what follows it.
//
// Errors: RejectTruncated, RejectTrailing.
func nextPlacement(b []byte) (p Placement, rest []byte, err error) {
	switch {
	case len(b) < placeSize:
		return p, nil, RejectTruncated
	case b[0]&^(tuple6|via6) != 0:
		return p, nil, RejectTrailing
	}
	p.Path = int(binary.BigEndian.Uint16(b[tupleSize:]))
	p.For = time.Duration(binary.BigEndian.Uint32(b[tupleSize+2:])) * time.Millisecond
	t, end, err := nextTuple(b, placeSize)
	if err != nil {
		return p, nil, err
	}
	p.Tuple = t
	six := b[0]&via6 != 0
	n := addrSize(six)
	if len(b) < end+n {
		return p, nil, RejectTruncated
	}
	if six {
		p.Via = netip.AddrFrom16([16]byte(b[end:]))
		if p.Via.Is4In6() {
			return p, nil, RejectTrailing
		}
	} else {
		p.Via = netip.AddrFrom4([4]byte(b[end:]))
	}
	return p, b[end+n:], nil
}
