package dataplane

import (
	"errors"
	"fmt"

	"weft/encap"
)

// SetPeerKeys changes the keys of the Tunnel's peer with a Name, as Peer's Key and
// Previous say. It is safe for concurrent use. After an error nothing has changed.
//
// No datagram is lost if the keys change in three steps. First both ends accept the next
// key besides the one in use (key, next). Then both send with it (next, key). At last
// both forget the former (next, nil). A peer without a key cannot be given one, and a
// peer with a key cannot lose it, nor can one that encrypts take the place of one that does
// not: that would change the length of the packets that fit.
func (g *Gateway) SetPeerKeys(name string, key, previous *encap.UDPKey) error {
	return SetPeerKeys(g.egress, g.ingress, name, key, previous)
}

// SetPeerKeys changes the keys of a peer, as Gateway.SetPeerKeys says. Receiving changes
// first, since a peer that sees a datagram with the new key may answer with that key at
// once.
func SetPeerKeys[P any](e *Egress, in *Ingress[P], name string, key, previous *encap.UDPKey) error {
	if e.config.Tunnel == nil || in == nil {
		return errors.New("dataplane: SetPeerKeys: there is no Tunnel")
	}
	t := e.paths.tunnel
	for i, c := range t.Peers {
		if c.Name != name {
			continue
		}
		if key == nil || c.Key == nil {
			return fmt.Errorf("dataplane: SetPeerKeys: peer %q has no key, or would have none: make a new Tunnel for that", name)
		}
		if !c.Key.Cipher.Hides() && (key.Cipher.Hides() || previous != nil && previous.Cipher.Hides()) {
			return fmt.Errorf("dataplane: SetPeerKeys: peer %q has a key for %v, and the new one is for %v, which takes more room: make a new Tunnel for that", name, c.Key.Cipher, key.Cipher)
		}
		p := t.all[i]
		sealer, err := newSealer(*key, t.Name, c.Name, t.Time())
		if err != nil {
			return err
		}
		in.mu.Lock()
		if err = p.opener.SetKeys(*key, previous); err == nil {
			err = t.pairs.set(p, t.Name, c.Name, key, previous)
		}
		in.mu.Unlock()
		if err != nil {
			return err
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if p.key != *key { // or the numbers of the one in use go on
			p.sealer, p.key = sealer, *key
		}
		return nil
	}
	return fmt.Errorf("dataplane: SetPeerKeys: no peer is named %q", name)
}
