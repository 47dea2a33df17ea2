package stack

import (
	"weft/encap"
	"weft/internal/dataplane"
)

// SetPeerKeys changes the keys of a peer of the Tunnel, by its Name, as Peer's Key and
// Previous say. No datagram is lost if both ends first accept the next key besides the
// one in use (key, next), then both send with it (next, key), and at last both forget
// the former (next, nil). A peer without a key cannot be given one, nor the other way
// round: that changes what fits into a packet. On error nothing has changed. It is safe
// for concurrent use.
func (h *Host) SetPeerKeys(name string, key, previous *encap.UDPKey) error {
	return dataplane.SetPeerKeys(h.egress, h.ingress, name, key, previous)
}
