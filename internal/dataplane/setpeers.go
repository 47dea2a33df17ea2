package dataplane

import (
	"errors"
	"fmt"
)

// SetPeers changes who is in the Tunnel. A peer that has the Name of a former one is the
// same: connections with it go on, with the same numbers, whatever else of it has changed.
// Packets of a peer that is not named any more are refused from then on, and those to its
// prefixes have no path, unless another peer has them now. It is safe for concurrent use.
// After an error nothing has changed.
func (g *Gateway) SetPeers(peers []Peer) error { return SetPeers(g.egress, g.ingress, peers) }

// SetPeers changes who is in a Tunnel, as Gateway.SetPeers says.
func SetPeers[P any](e *Egress, in *Ingress[P], peers []Peer) error {
	if e.config.Tunnel == nil || in == nil {
		return errors.New("dataplane: SetPeers: there is no Tunnel")
	}
	t := e.paths.tunnel
	t.change.Lock()
	defer t.change.Unlock()
	if err := setPeers(e, in, peers); err != nil {
		return fmt.Errorf("dataplane: SetPeers: %w", err)
	}
	return nil
}

// setPeers makes a new roster, in which former peers with their names stay the same. All
// that can fail comes first. Receiving changes before sending does, since a peer that sees
// a datagram with a new key may answer with that key at once.
func setPeers[P any](e *Egress, in *Ingress[P], peers []Peer) error {
	t := e.paths.tunnel
	if err := checkPeers(peers); err != nil {
		return err
	}
	after := t.Tunnel
	after.Peers, after.Room = peers, 0
	if n := after.overhead(); n > t.room {
		return fmt.Errorf("these peers take %d bytes before inner packets, and the Tunnel has room for %d: begin it with more Room", n, t.room)
	}
	former := func(name string) *peer {
		if p := t.peers.names[name]; p != nil {
			return p
		}
		return t.gone[name]
	}
	fresh, err := freshPeers(peers, t.Name, t.Time(), former)
	if err != nil {
		return err
	}
	stay := make([]*peer, len(fresh))
	for i, p := range fresh {
		if stay[i] = former(p.Name); stay[i] == nil {
			stay[i] = p
		}
		stay[i].numbers = p.numbers
	}
	next := newRoster(stay, fresh)
	t.remember(next)

	in.mu.Lock()
	for i, p := range stay {
		p.receiveAs(fresh[i])
	}
	t.from = next
	in.mu.Unlock()

	e.mu.Lock()
	defer e.mu.Unlock()
	for i, p := range stay {
		p.sendAs(fresh[i])
	}
	t.peers = next
	for _, l := range e.lanes {
		l.paths.rebind()
	}
	return nil
}

// maxGone is how many peers are remembered that have gone.
const maxGone = 4096

// remember keeps the peers that are not in the next roster, with the numbers that were seen
// under their keys: one that comes back has not sent anew what somebody has recorded. The
// caller holds t.change.
func (t *tunnel) remember(next *roster) {
	for name, p := range t.peers.names {
		if next.names[name] != nil || p.Key == nil {
			continue
		}
		if len(t.gone) >= maxGone {
			for other := range t.gone { // any
				delete(t.gone, other)
				break
			}
		}
		t.gone[name] = p
	}
	for name := range next.names {
		delete(t.gone, name)
	}
}

// receiveAs takes from a fresh peer what receiving needs. The numbers seen under a key that
// stays are remembered. The caller holds the lock of ingress.
func (p *peer) receiveAs(fresh *peer) {
	p.Peer, p.from = fresh.Peer, fresh.from
	if p == fresh || fresh.same {
		return
	}
	if p.opener == nil || p.Key == nil || p.opener.SetKeys(*p.Key, p.Accept...) != nil {
		p.opener = fresh.opener
	}
}

// sendAs takes from a fresh peer what sending needs. The numbers of a key that stays go on.
// The caller holds the lock of egress.
func (p *peer) sendAs(fresh *peer) {
	p.to = fresh.to
	if fresh.same {
		return
	}
	if p.sealer == nil || fresh.sealer == nil || p.key != fresh.key {
		p.sealer, p.key = fresh.sealer, fresh.key
	}
}

// rebind makes all pairs look for their peers again.
func (t *pathTable) rebind() {
	for _, p := range t.pairs {
		to := t.tunnel.peers.behind(p.dst.IP())
		switch {
		case to == nil:
			t.groups.leave(p)
		case p.peer == nil:
			t.bind(p, t.groups.ofTunnel(t.tunnel.Underlay.Paths()))
		}
		p.peer = to
	}
}

// given returns the peers as they were given last.
func (r *roster) given() (peers []Peer) {
	for _, p := range r.all {
		peers = append(peers, p.Peer)
	}
	return peers
}

// PeerDatagrams returns how many good datagrams have come from the tunnel's peer with a
// name; 0 if there is none.
func (in *Ingress[P]) PeerDatagrams(name string) uint64 {
	in.mu.Lock()
	defer in.mu.Unlock()
	if s, ok := in.from.(*tunnelSource); ok {
		if p := s.tunnel.from.names[name]; p != nil {
			return p.received
		}
	}
	return 0
}

// PeerDatagrams is the Ingress's.
func (g *Gateway) PeerDatagrams(name string) uint64 { return g.ingress.PeerDatagrams(name) }
