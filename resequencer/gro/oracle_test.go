package gro

import (
	"reflect"

	"weft/flowcell"
)

// oracle says by fields and from the beginning what a Train says by words and
// as it goes.
type oracle []packet

func (p packet) mergeable() bool {
	return p.proto == flowcell.ProtoTCP && len(p.ipOptions) == 0 &&
		(p.fragment == 0 || p.fragment == 0x4000) && len(p.payload) > 0 &&
		p.flags&flowcell.FlagSYN == 0 && p.flags&flowcell.FlagRST == 0 &&
		p.flags&flowcell.FlagURG == 0 && p.flags&flowcell.FlagCWR == 0
}

// segment is the payload of each of the packet's segments but the last.
func (p packet) segment() int {
	if p.gsoSize > 0 && p.gsoSize < len(p.payload) {
		return p.gsoSize
	}
	return len(p.payload)
}

// stripped has what packets of a train may differ in removed.
func (p packet) stripped() packet {
	p.id, p.seq, p.payload, p.gsoSize = 0, 0, nil, 0
	p.flags &^= flowcell.FlagPSH | flowcell.FlagFIN
	return p
}

// add reports whether p continues the train, and if so appends it.
func (o *oracle) add(p packet) bool {
	train := *o
	if !p.mergeable() || len(train) == 0 {
		return false
	}
	first := train[0]
	mss := first.segment()
	length := len(first.bytes()) + len(p.payload)
	for i, q := range train {
		ends := q.flags&flowcell.FlagPSH != 0 || q.flags&flowcell.FlagFIN != 0
		if !q.mergeable() || ends || len(q.payload)%mss != 0 {
			return false
		}
		if i > 0 {
			length += len(q.payload)
		}
	}
	before := train[len(train)-1]
	switch {
	case p.seq != before.seq+uint32(len(before.payload)),
		!reflect.DeepEqual(p.stripped(), first.stripped()),
		length > 65535:
		return false
	}
	if p.segment() < len(p.payload) { // a super-segment
		if p.segment() != mss {
			return false
		}
	} else if len(p.payload) > mss {
		return false
	}
	*o = append(train, p)
	return true
}

func (o oracle) segments() int {
	n := 0
	for _, p := range o {
		n++
		if p.mergeable() {
			n += (len(p.payload) - 1) / p.segment()
		}
	}
	return n
}
