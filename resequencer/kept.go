package resequencer

import (
	"time"

	"weft/flowcell"
)

// Kept is the state of a flow that the Buffer's caller keeps, because it has a place for each flow
// and need not search. The zero value is a flow that has not begun. While the Buffer holds packets
// of it, it must stay where it is. Kept flows are not evicted and do not count to Config.Flows.
type Kept[P any] struct {
	flow flow[P]

	src     flowcell.Address
	peer    *peer[P]
	evicted uint64 // peers, when peer was last found
}

// PushKept is Push for a flow that its caller keeps. Once the flow
// is Known, only the protocol counts of s.Flow.
func (b *Buffer[P]) PushKept(k *Kept[P], s *flowcell.Packet, p P, now time.Duration, out []P) []P {
	b.now = max(b.now, now)
	f := &k.flow
	if f.kept {
		if b.next(f, s) {
			return append(out, p)
		}
		switch b.beside(f, s, p) {
		case delivered:
			return append(out, p)
		case held:
			return out
		}
	} else {
		f = nil
	}
	b.keeping = k
	out = b.push(f, s, p, out)
	b.keeping = nil
	return out
}

// Forget ends a kept flow of which nothing is held: it may be used for another one.
func (b *Buffer[P]) Forget(k *Kept[P]) {
	if k.flow.kept {
		b.kept--
	}
	*k = Kept[P]{}
}

// Known reports whether the flow has begun.
func (k *Kept[P]) Known() bool { return k.flow.kept }

// Touch reads what PushKept will need soon. The result has no meaning.
func (k *Kept[P]) Touch() uint32 { return k.flow.next }

func (b *Buffer[P]) rememberKept(s *flowcell.Packet) *flow[P] {
	k := b.keeping
	b.kept++
	k.src = s.Flow.Src
	k.peer, k.evicted = b.peer(k.src), b.peers.Evicted()
	k.flow.kept = true
	return &k.flow
}

// peerOfKept is the peer of a kept flow.
func (b *Buffer[P]) peerOfKept(k *Kept[P]) *peer[P] {
	if n := b.peers.Evicted(); k.evicted != n {
		k.peer, k.evicted = b.peer(k.src), n
	}
	return k.peer
}
