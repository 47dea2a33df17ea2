package stack

import (
	"weft/encap"
	"weft/internal/dataplane"
)

// SetPeerKeys changes the keys of the Tunnel's peer with a Name, as Peer's Key and
// Previous say. It is safe for concurrent use. After an error nothing has changed.
//
// No datagram is lost if the keys change in three steps. First both ends accept the next
// key besides the one in use (key, next). Then both send with it (next, key). At last
// both forget the former (next, nil). A peer without a key cannot be given one, and a
// peer with a key cannot lose it, nor can one that encrypts take the place of one that does
// not: that would change the length of the packets that fit.
func (h *Host) SetPeerKeys(name string, key, previous *encap.UDPKey) error {
	return dataplane.SetPeerKeys(h.egress, h.ingress, name, key, previous)
}
