package stack

import (
	"weft/encap"
	"weft/internal/dataplane"
)

// SetPeerKeys changes the keys of the Tunnel's peer with a Name, as Peer's Key and
// Accept say. It is safe for concurrent use. After an error nothing has changed.
//
// No datagram is lost if the keys change in three steps. First both ends accept the next
// key besides the one in use (key, next). Then both send with it (next, key). At last
// both forget the former (next). A peer without a key cannot be given one so, and a
// peer with a key cannot lose it: SetPeers can do both. Keys that take more room before
// inner packets than the Tunnel has begun with are refused.
func (h *Host) SetPeerKeys(name string, key *encap.UDPKey, accept ...encap.UDPKey) error {
	return dataplane.SetPeerKeys(h.egress, h.ingress, name, key, accept...)
}

// SetPeers changes who is in the Host's Tunnel. A peer that has the Name of a former one is
// the same: connections with it go on, with the same numbers, whatever else of it has
// changed. Packets of a peer that is not named any more are refused from then on, and those
// to its prefixes have no path, unless another peer has them now. It is safe for concurrent
// use. After an error nothing has changed.
func (h *Host) SetPeers(peers []Peer) error {
	return dataplane.SetPeers(h.egress, h.ingress, peers)
}

// PeerDatagrams returns how many datagrams have come from the Tunnel's peer with a Name, and
// were its own as far as can be told: with a key, for certain. It is 0 if there is none.
func (h *Host) PeerDatagrams(name string) uint64 { return h.ingress.PeerDatagrams(name) }
