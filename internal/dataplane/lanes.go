package dataplane

import "weft/flowcell"

// lanes is how far the datagrams of a flow have come by each lane (flowcell.Place). It is pure.
type lanes struct {
	last [flowcell.NoLane]uint32 // the highest number
	seen uint16                  // lanes by which any has come
}

// came takes note of a datagram.
func (l *lanes) came(p flowcell.Place, number uint32) {
	lane, ok := p.Lane()
	if !ok || lane == flowcell.NoLane {
		return
	}
	if l.seen&(1<<lane) == 0 || int32(number-l.last[lane]) > 0 {
		l.last[lane] = number
	}
	l.seen |= 1 << lane
}

// passed returns up to which number nothing can come any more that has not come, since a lane
// keeps its order. all are the lanes of the flow. ok is false if that is not known.
func (l *lanes) passed(all uint16) (upTo uint32, ok bool) {
	if all == 0 || all&^l.seen != 0 {
		return 0, false
	}
	for i := range l.last {
		if all&(1<<i) != 0 && (!ok || int32(l.last[i]-upTo) < 0) {
			upTo, ok = l.last[i], true
		}
	}
	return upTo, ok
}
