package dataplane

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"weft/encap"
	"weft/flowcell"
)

// Underlay is stack.Underlay.
type Underlay interface {
	Paths() int
	MTU() int
	Send(path int, to netip.AddrPort, tos byte, parts [][]byte, size int) error
	Receive(bufs [][]byte, sizes, segs []int, tos []byte, from []netip.AddrPort) (n int, err error)
	Close() error
}

// Tunnel is stack.Tunnel, which describes the fields.
type Tunnel struct {
	Underlay     Underlay
	Name         string
	Peers        []Peer
	ZeroChecksum bool
	Time         func() time.Time
}

// Peer is stack.Peer.
type Peer struct {
	Name          string
	Endpoint      netip.AddrPort
	Prefixes      []netip.Prefix
	Key, Previous *encap.UDPKey
}

// maxPeers bounds a Tunnel's peers; each has a few hundred bytes.
const maxPeers = 1 << 16

// overhead is what a Tunnel adds to an inner packet, in bytes.
func (t *Tunnel) overhead() int {
	n := 8 + encap.UDPOverhead
	for _, p := range t.Peers {
		if p.Key != nil {
			n = max(n, 8+p.Key.Cipher.Overhead())
		}
	}
	for _, p := range t.Peers {
		if p.Endpoint.Addr().Unmap().Is6() {
			return n + 40
		}
	}
	return n + 20
}

func (t *Tunnel) validate() error {
	if t.Underlay == nil {
		return errors.New("Underlay is missing: link.OpenUDP opens one")
	}
	if n := len(t.Peers); n > maxPeers {
		return fmt.Errorf("Peers has %d entries, at most %d are allowed", n, maxPeers)
	}
	owner := make(map[netip.Prefix]int)
	for i, p := range t.Peers {
		if !p.Endpoint.IsValid() || p.Endpoint.Port() == 0 {
			return fmt.Errorf("Peers[%d].Endpoint %v is not an address and a port", i, p.Endpoint)
		}
		if len(p.Prefixes) == 0 {
			return fmt.Errorf("Peers[%d].Prefixes are missing: give the addresses behind %v", i, p.Endpoint)
		}
		for _, prefix := range p.Prefixes {
			if !prefix.IsValid() {
				return fmt.Errorf("Peers[%d].Prefixes has an invalid one", i)
			}
			if j, taken := owner[prefix.Masked()]; taken {
				return fmt.Errorf("Peers[%d].Prefixes: %v is Peers[%d]'s already", i, prefix, j)
			}
			owner[prefix.Masked()] = i
		}
	}
	return nil
}

// tunnel is a Tunnel at work. Egress uses its sending half, a source its receiving
// half.
type tunnel struct {
	Tunnel
	partial bool    // inner checksums may be left to the outer one
	all     []*peer // as Peers
	exact   map[netip.Addr]*peer
	ranges  []peerRange // longest first
	pairs   pairs       // behind the lock of ingress
}

type peerRange struct {
	prefix netip.Prefix
	peer   *peer
}

// peer is a Peer with its keys at work.
type peer struct {
	to     netip.AddrPort
	from   netip.Addr
	sealer *encap.Sealer // nil without a key; behind the lock of egress
	key    encap.UDPKey  // the sealer's
	opener *encap.Opener // behind the lock of ingress
	pairs  []uint32      // see type pairs; behind the lock of ingress
}

func newTunnel(t Tunnel) (*tunnel, error) {
	if t.Time == nil {
		t.Time = time.Now
	}
	w := &tunnel{Tunnel: t, partial: !t.ZeroChecksum, exact: make(map[netip.Addr]*peer)}
	for i, c := range t.Peers {
		p := &peer{to: netip.AddrPortFrom(c.Endpoint.Addr().Unmap(), c.Endpoint.Port())}
		p.from = p.to.Addr()
		err := p.authenticate(t.Name, c, t.Time())
		if err == nil {
			err = w.pairs.set(p, t.Name, c.Name, c.Key, c.Previous)
		}
		if err != nil {
			return nil, fmt.Errorf("Peers[%d]: %w", i, err)
		}
		w.all = append(w.all, p)
		for _, prefix := range c.Prefixes {
			if prefix = prefix.Masked(); prefix.IsSingleIP() {
				w.exact[prefix.Addr()] = p
			} else {
				w.ranges = append(w.ranges, peerRange{prefix, p})
			}
		}
	}
	slices.SortStableFunc(w.ranges, func(a, b peerRange) int { return b.prefix.Bits() - a.prefix.Bits() })
	return w, nil
}

// authenticate gives a new peer its keys.
func (p *peer) authenticate(self string, c Peer, now time.Time) (err error) {
	if c.Key == nil {
		if c.Previous != nil {
			return errors.New("Previous is given, but Key is missing: give both")
		}
		return nil
	}
	if p.sealer, err = newSealer(*c.Key, self, c.Name, now); err != nil {
		return err
	}
	p.key = *c.Key
	if p.opener, err = encap.NewOpener(*c.Key, c.Name, self); err != nil {
		return err
	}
	return p.opener.SetKeys(*c.Key, c.Previous)
}

func newSealer(key encap.UDPKey, from, to string, now time.Time) (*encap.Sealer, error) {
	var salt [3]byte
	rand.Read(salt[:]) // never fails
	return encap.NewSealer(key, from, to, now, salt)
}

// behind returns the peer that has an inner address, nil if none.
func (t *tunnel) behind(a netip.Addr) *peer {
	if p := t.exact[a]; p != nil {
		return p
	}
	for _, r := range t.ranges {
		if r.prefix.Contains(a) {
			return r.peer
		}
	}
	return nil
}

// pair returns the state towards an inner address. It has no group if no peer has the
// address.
func (t *tunnel) pair(table *pathTable, dst flowcell.Address) *pair {
	to := t.behind(dst.IP())
	if to == nil {
		return &pair{dst: dst}
	}
	p := &pair{dst: dst, peer: to}
	table.bind(p, table.groups.ofTunnel(t.Underlay.Paths()))
	return p
}
