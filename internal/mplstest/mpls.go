// Package mplstest builds and takes apart MPLS label stacks as hosts and switches would, for
// tests of the plans. weft itself only plans for MPLS and sends none. Pure.
package mplstest

import (
	"encoding/binary"
	"errors"
	"fmt"

	"weft/encap"
)

const (
	entryLen   = 4  // bytes of a label stack entry
	firstLabel = 16 // the labels before it mean something else (RFC 3032 §2.1)
	bottomBit  = 1 << 8

	// maxPort is the highest port that has a label.
	maxPort = 1<<20 - firstLabel - 1
)

// Why a label stack is refused. They are returned unwrapped.
var (
	ErrLabel = errors.New("mpls: reserved label, which is no port")
	ErrTTL   = errors.New("mpls: TTL of the label stack has run out")
)

// Append appends the label stack that takes a packet out of these ports, one at each
// switch (RFC 3032 §2.1): port p is label 16+p, the last one has the bottom-of-stack bit.
// The switch before the destination's edge switch pops it and forwards the plain packet
// (penultimate hop popping).
//
// The traffic class is the class selector of the inner tos, its upper three bits
// (RFC 5462). The stack has no room for the ECN field: switches that push queues
// drop, or mark the packet inside (RFC 5129 §4.1). Errors name the port; b is then
// returned unchanged.
func Append(b []byte, ports []int, tos, ttl uint8) ([]byte, error) {
	if len(ports) == 0 {
		return b, errors.New("mpls: no ports for a label stack: a packet without one is not MPLS")
	}
	for i, port := range ports {
		if port < 0 || port > maxPort {
			return b, fmt.Errorf("mpls: port %d, number %d on the path, has no MPLS label: must be from 0 to %d", port, i, maxPort)
		}
	}
	rest := uint32(tos>>5)<<9 | uint32(ttl)
	for i, port := range ports {
		entry := encap.MPLSLabel(port)<<12 | rest
		if i == len(ports)-1 {
			entry |= bottomBit
		}
		b = binary.BigEndian.AppendUint32(b, entry)
	}
	return b, nil
}

// Pop takes the top entry off the label stack in b, as a switch does that forwards by
// it. The entry's TTL less one becomes that of the next entry (RFC 3032 §2.4.2), in place.
// The packet behind the bottom is left as it is, with its TTL (RFC 3443 §3.2, the pipe
// model). label is at least 16; rest lies in b.
//
// Errors: encap.ErrTruncated also if the stack ends, with the bytes, before the bottom;
// ErrLabel, ErrTTL. b is then unchanged.
func Pop(b []byte) (label uint32, rest []byte, bottom bool, err error) {
	if len(b) < entryLen {
		return 0, nil, false, encap.ErrTruncated
	}
	entry := binary.BigEndian.Uint32(b)
	label, bottom, rest = entry>>12, entry&bottomBit != 0, b[entryLen:]
	ttl := uint8(entry)
	switch {
	case label < firstLabel:
		return 0, nil, false, ErrLabel
	case ttl <= 1:
		return 0, nil, false, ErrTTL
	case bottom:
		return label, rest, true, nil
	case len(rest) < entryLen:
		return 0, nil, false, encap.ErrTruncated
	}
	rest[3] = ttl - 1
	return label, rest, false, nil
}
