package stack

import (
	"net/netip"
	"time"

	"weft/internal/dataplane"
	"weft/mesh"
)

// Underlay carries datagrams over as many paths as it has source ports. link.OpenUDP
// opens one and describes the methods.
type Underlay interface {
	Paths() int
	MTU() int
	Send(path int, to netip.AddrPort, tos byte, parts [][]byte, size int) error
	Receive(bufs [][]byte, sizes, segs []int, tos []byte, from []netip.AddrPort) (n int, err error)
	Close() error
}

// Tunnel carries packets over a fabric that knows nothing of weft: packets travel in UDP,
// and plain ECMP spreads the source ports over the paths. It needs no privilege.
type Tunnel struct {
	// Underlay carries the datagrams. After a successful New the Host owns it and closes
	// it. Required.
	Underlay Underlay
	// Name is this end's name for peers that share a key with it.
	Name string
	// Peers are the only senders and receivers of packets. Host.SetPeers changes them.
	Peers []Peer
	// Room is for peers that come later: the bytes that datagrams may have before inner
	// packets. encap.UDPHiddenOverhead is enough for any, in IPv4 and IPv6. 0: what Peers
	// need is enough.
	Room int
	// ZeroChecksum says that the Underlay leaves the outer checksum 0.
	ZeroChecksum bool
	// Time returns the time of day; nil is time.Now. The numbers of datagrams with a MAC
	// begin at it, and follow it when it is set forward. Peers refuse numbers that are
	// lower than those that they have seen, so Time should not go back from one start of
	// a program to the next. The sender calls it once a second. It must be safe for
	// concurrent use.
	Time func() time.Time
}

// Peer is another end of a Tunnel.
type Peer = mesh.Peer

// plane is the tunnel as the dataplane takes it.
func (t *Tunnel) plane() *dataplane.Tunnel {
	if t == nil {
		return nil
	}
	return &dataplane.Tunnel{Underlay: t.Underlay, Name: t.Name, Peers: t.Peers, Room: t.Room, ZeroChecksum: t.ZeroChecksum, Time: t.Time}
}
