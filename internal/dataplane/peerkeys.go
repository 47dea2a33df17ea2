package dataplane

import (
	"errors"
	"fmt"
	"slices"

	"weft/encap"
)

// SetPeerKeys changes the keys of the Tunnel's peer with a Name, as Peer's Key and
// Accept say. It is safe for concurrent use. After an error nothing has changed.
//
// No datagram is lost if the keys change in three steps. First both ends accept the next
// key besides the one in use (key, next). Then both send with it (next, key). At last
// both forget the former (next). A peer without a key cannot be given one so, and a
// peer with a key cannot lose it: SetPeers can do both. Keys that take more room before
// inner packets than the Tunnel has begun with are refused.
func (g *Gateway) SetPeerKeys(name string, key *encap.UDPKey, accept ...encap.UDPKey) error {
	return SetPeerKeys(g.egress, g.ingress, name, key, accept...)
}

// SetPeerKeys changes the keys of a peer, as Gateway.SetPeerKeys says.
func SetPeerKeys[P any](e *Egress, in *Ingress[P], name string, key *encap.UDPKey, accept ...encap.UDPKey) error {
	if e.config.Tunnel == nil || in == nil {
		return errors.New("dataplane: SetPeerKeys: there is no Tunnel")
	}
	t := e.paths.tunnel
	t.change.Lock()
	defer t.change.Unlock()
	peers := t.peers.given()
	i := slices.IndexFunc(peers, func(p Peer) bool { return p.Name == name })
	if i < 0 {
		return fmt.Errorf("dataplane: SetPeerKeys: no peer is named %q", name)
	}
	p := &peers[i]
	if key == nil || p.Key == nil {
		return fmt.Errorf("dataplane: SetPeerKeys: peer %q has no key, or would have none: SetPeers can do that", name)
	}
	p.Key, p.Accept = key, accept
	if err := setPeers(e, in, peers); err != nil {
		return fmt.Errorf("dataplane: SetPeerKeys: %w", err)
	}
	return nil
}
