package dataplane

import (
	"weft/flowcell"
	"weft/resequencer"
)

// tracks is how far the datagrams of a flow have come by each track (flowcell.Place). It is pure.
type tracks struct {
	last [flowcell.NoTrack]uint32 // the highest number
	seen uint16                   // tracks by which any has come
}

// came takes note of a datagram.
func (l *tracks) came(p flowcell.Place, number uint32) {
	track, ok := p.Track()
	if !ok || track == flowcell.NoTrack {
		return
	}
	if l.seen&(1<<track) == 0 || int32(number-l.last[track]) > 0 {
		l.last[track] = number
	}
	l.seen |= 1 << track
}

// passed returns up to which number nothing can come any more that has not come, since a track
// keeps its order. all are the tracks of the flow. ok is false if that is not known.
func (l *tracks) passed(all uint16) (upTo uint32, ok bool) {
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

// datagramOrder is how datagrams are put in order where segments of TCP are by c. What is lost
// is known by tracks, so a hold need not be short: it must be longer than what the queues of
// the paths differ by, or datagrams that are late are taken for lost. It is not measured,
// since lost datagrams do not come again. Numbers begin again after 4,096 datagrams: less than
// half of that may wait.
func datagramOrder(c resequencer.Config) resequencer.Config {
	if c.Hold <= 0 {
		c.Hold = resequencer.DefaultHold
	}
	c.Hold = min(datagramHolds*c.Hold, resequencer.MaxHold)
	c.MinHold = c.Hold
	if c.FlowPackets <= 0 || c.FlowPackets > datagramsHeld {
		c.FlowPackets = datagramsHeld
	}
	if c.Discipline != resequencer.Off {
		c.Discipline = resequencer.Sequence
	}
	return c
}

const (
	datagramHolds = 3
	datagramsHeld = 1536
)
