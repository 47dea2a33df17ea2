package hops

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"weft/encap"
	"weft/flowcell"
	"weft/topology"
)

// network walks packets as switches do, and answers in their names. It knows the fabric, and
// nothing of what the Walk has in mind.
type network struct {
	t     *testing.T
	f     *topology.Topology
	self  netip.Addr
	to    netip.Addr
	short bool // quotes of eight bytes behind the first header
	plain bool // the target does not run weft
}

// send returns the answer to a packet, nil if there is none.
func (n *network) send(b []byte) []byte {
	from, _ := n.f.ByAddr(n.self)
	target, _ := n.f.ByAddr(n.to)
	at := n.f.EdgeOf(from)
	for range 20 {
		if p := b[0] >> 4; p == 4 && b[9] == flowcell.ProtoIPIP {
			dst, _ := n.f.ByAddr(destination(b))
			if dst == at {
				b = b[20:]
				continue
			}
			if b[8]--; b[8] == 0 {
				b[8]++
				return n.expired(at, b)
			}
			at = n.towards(at, dst)
			continue
		}
		if at == target {
			return n.reach(b)
		}
		if b[8]--; b[8] == 0 {
			b[8]++
			return n.expired(at, b)
		}
		at = n.towards(at, target)
	}
	n.t.Fatal("a packet walks in circles")
	return nil
}

// towards is the next switch from one to a node: down where the way leads down, else up to
// where it does.
func (n *network) towards(at, to topology.NodeID) topology.NodeID {
	best, next := 1<<30, at
	for _, p := range n.f.Ports(at) {
		if d := n.distance(p.Peer, to, 6); d < best {
			best, next = d, p.Peer
		}
	}
	return next
}

func (n *network) distance(from, to topology.NodeID, most int) int {
	seen := map[topology.NodeID]int{from: 0}
	queue := []topology.NodeID{from}
	for len(queue) > 0 {
		x := queue[0]
		queue = queue[1:]
		if x == to {
			return seen[x]
		}
		if n.f.Node(x).Layer == topology.LayerHost {
			continue
		}
		for _, p := range n.f.Ports(x) {
			if _, known := seen[p.Peer]; !known && seen[x] < most {
				seen[p.Peer] = seen[x] + 1
				queue = append(queue, p.Peer)
			}
		}
	}
	return 1 << 29
}

func (n *network) expired(at topology.NodeID, b []byte) []byte {
	return n.icmp(n.f.Node(at).Addr, icmpTimeExceeded, 0, b)
}

func (n *network) icmp(from netip.Addr, kind, code byte, quote []byte) []byte {
	if n.short {
		quote = quote[:28]
	}
	p := make([]byte, 28+len(quote))
	p[0], p[8], p[9] = 0x45, 64, flowcell.ProtoICMP
	binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
	copy(p[12:], from.AsSlice())
	copy(p[16:], n.self.AsSlice())
	p[20], p[21] = kind, code
	copy(p[28:], quote)
	return p
}

func (n *network) reach(b []byte) []byte {
	if n.plain {
		return n.icmp(n.to, icmpUnreachable, 3, b)
	}
	setTTL(b, 64)
	if _, err := encap.ReplyProbe(b); err != nil {
		n.t.Fatal(err)
	}
	return b
}
