package fabric

import (
	"encoding/binary"
	"net"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
)

// Constants of linux/seg6_local.h that netlink lacks.
const (
	seg6LocalCounters = 10
	seg6LocalFlavors  = 11

	seg6CounterPackets = 2
	seg6CounterBytes   = 3
	seg6CounterErrors  = 4

	seg6FlavorOperation = 1
	seg6FlavorBlockBits = 2
	seg6FlavorNodeBits  = 3

	seg6NextCSID = 1 << 4 // of seg6FlavorOperation
)

// sidEncap is what a kernel route does to packets with a label. It counts them
// and, for End and End.X, takes the destination for micro-SIDs (NEXT-C-SID).
type sidEncap struct{ netlink.SEG6LocalEncap }

func newSIDEncap(s SID) *sidEncap {
	e := new(sidEncap)
	e.Flags[nl.SEG6_LOCAL_ACTION] = true
	switch s.Action {
	case ActionEndDX4:
		e.Action, e.InAddr = nl.SEG6_LOCAL_ACTION_END_DX4, net.IPv4zero
		e.Flags[nl.SEG6_LOCAL_NH4] = true
		return e
	case ActionEndDT6:
		e.Action, e.Table = nl.SEG6_LOCAL_ACTION_END_DT6, unix.RT_TABLE_MAIN
		e.Flags[nl.SEG6_LOCAL_TABLE] = true
		return e
	case ActionEnd:
		e.Action = nl.SEG6_LOCAL_ACTION_END
		return e
	}
	e.Action, e.In6Addr = nl.SEG6_LOCAL_ACTION_END_X, s.NextHop.AsSlice()
	e.Flags[nl.SEG6_LOCAL_NH6] = true
	return e
}

// Encode adds the attributes that netlink does not know.
func (e *sidEncap) Encode() ([]byte, error) {
	b, err := e.SEG6LocalEncap.Encode()
	if err != nil {
		return nil, err
	}
	zero := make([]byte, 8)
	counters := nl.NewRtAttr(seg6LocalCounters|unix.NLA_F_NESTED, nil)
	for _, c := range []int{seg6CounterPackets, seg6CounterBytes, seg6CounterErrors} {
		counters.AddRtAttr(c, zero)
	}
	b = append(b, counters.Serialize()...)
	block, node := uint8(sidBlockBits), uint8(sidBits)
	switch e.Action {
	case nl.SEG6_LOCAL_ACTION_END:
		block, node = localBlockBits, localNodeBits
	case nl.SEG6_LOCAL_ACTION_END_X:
	default:
		return b, nil
	}
	flavors := nl.NewRtAttr(seg6LocalFlavors|unix.NLA_F_NESTED, nil)
	flavors.AddRtAttr(seg6FlavorOperation, nl.Uint32Attr(seg6NextCSID))
	flavors.AddRtAttr(seg6FlavorBlockBits, nl.Uint8Attr(block))
	flavors.AddRtAttr(seg6FlavorNodeBits, nl.Uint8Attr(node))
	return append(b, flavors.Serialize()...), nil
}

// sidRoute is a route of a label as the kernel has it. It includes what netlink does not
// read: whether the route takes addresses for micro-SIDs of weft's format, and its
// counters.
type sidRoute struct {
	action          int
	micro           bool
	packets, errors uint64
}

// readSIDs lists our routes of labels in the calling thread's network namespace.
func readSIDs() ([]sidRoute, error) {
	return kernel.Dumped(func() (list []sidRoute, err error) {
		req := nl.NewNetlinkRequest(unix.RTM_GETROUTE, unix.NLM_F_DUMP)
		req.AddData(&nl.RtMsg{RtMsg: unix.RtMsg{Family: unix.AF_INET6}})
		err = req.ExecuteIter(unix.NETLINK_ROUTE, unix.RTM_NEWROUTE, func(b []byte) bool {
			msg := nl.DeserializeRtMsg(b)
			if msg.Protocol != kernel.RouteProtocol {
				return true
			}
			if s, ok := parseSIDRoute(b[msg.Len():]); ok {
				list = append(list, s)
			}
			return true
		})
		return list, err
	})
}

// parseSIDRoute is false for routes that are not seg6local's.
func parseSIDRoute(b []byte) (s sidRoute, ok bool) {
	var encap []byte
	eachAttr(b, func(kind int, value []byte) {
		switch {
		case kind == unix.RTA_ENCAP:
			encap = value
		case kind == unix.RTA_ENCAP_TYPE && len(value) >= 2:
			ok = binary.NativeEndian.Uint16(value) == nl.LWTUNNEL_ENCAP_SEG6_LOCAL
		}
	})
	if !ok {
		return s, false
	}
	var operation uint32
	var block, node byte
	eachAttr(encap, func(kind int, value []byte) {
		switch {
		case kind == nl.SEG6_LOCAL_ACTION && len(value) >= 4:
			s.action = int(binary.NativeEndian.Uint32(value))
		case kind == seg6LocalFlavors:
			eachAttr(value, func(kind int, value []byte) {
				switch {
				case kind == seg6FlavorOperation && len(value) >= 4:
					operation = binary.NativeEndian.Uint32(value)
				case kind == seg6FlavorBlockBits && len(value) >= 1:
					block = value[0]
				case kind == seg6FlavorNodeBits && len(value) >= 1:
					node = value[0]
				}
			})
		case kind == seg6LocalCounters:
			eachAttr(value, func(kind int, value []byte) {
				switch {
				case kind == seg6CounterPackets && len(value) >= 8:
					s.packets = binary.NativeEndian.Uint64(value)
				case kind == seg6CounterErrors && len(value) >= 8:
					s.errors = binary.NativeEndian.Uint64(value)
				}
			})
		}
	})
	s.micro = operation == seg6NextCSID && block == sidBlockBits && node == sidBits
	return s, true
}

// eachAttr calls f for the netlink attributes in b, up to the first that is cut
// off.
func eachAttr(b []byte, f func(kind int, value []byte)) {
	for len(b) >= unix.SizeofNlAttr {
		n := int(binary.NativeEndian.Uint16(b))
		if n < unix.SizeofNlAttr || n > len(b) {
			return
		}
		f(int(binary.NativeEndian.Uint16(b[2:])&^unix.NLA_F_NESTED), b[unix.SizeofNlAttr:n])
		b = b[min((n+3)&^3, len(b)):]
	}
}
