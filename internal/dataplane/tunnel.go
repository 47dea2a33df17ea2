package dataplane

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"weft/encap"
	"weft/flowcell"
	"weft/link"
	"weft/mesh"
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
	Room         int
	ZeroChecksum bool
	Time         func() time.Time
}

// Peer is another end of a Tunnel.
type Peer = mesh.Peer

// maxPeers bounds a Tunnel's peers; each has a few hundred bytes.
const maxPeers = 1 << 16

// overhead is what a Tunnel adds to an inner packet, in bytes.
func (t *Tunnel) overhead() int {
	n, outer := max(encap.UDPOverhead, t.Room), 20
	if t.Room > 0 { // for peers that are not known yet
		outer = 40
	}
	for _, p := range t.Peers {
		if p.Key != nil {
			n = max(n, p.Key.Cipher.Overhead())
		}
		for _, k := range p.Accept {
			n = max(n, k.Cipher.Overhead())
		}
		if p.Endpoint.Addr().Unmap().Is6() {
			outer = 40
		}
	}
	return outer + 8 + n
}

// TrainPayload is the most TCP payload of a super-segment, in bytes, whose datagrams leave in
// one call. Where there is a little more, each super-segment costs two. mtu is that of outer
// packets, and overhead what a Tunnel adds to inner ones.
func TrainPayload(mtu, overhead int) int {
	const outer, inner = 20 + 8, 20 + 20 // the least; what has more has fewer bytes in as many datagrams
	size := mtu - outer
	return link.TrainBytes(size) / size * (mtu - overhead - inner)
}

func (t *Tunnel) validate() error {
	if t.Underlay == nil {
		return errors.New("Underlay is missing: link.OpenUDP opens one")
	}
	if t.Room < 0 || t.Room > encap.UDPHiddenOverhead {
		return fmt.Errorf("Room is %d bytes: must be from 0 to %d", t.Room, encap.UDPHiddenOverhead)
	}
	return checkPeers(t.Peers)
}

func checkPeers(peers []Peer) error {
	if n := len(peers); n > maxPeers {
		return fmt.Errorf("Peers has %d entries, at most %d are allowed", n, maxPeers)
	}
	named := make(map[string]int)
	owner := make(map[netip.Prefix]int)
	for i, p := range peers {
		if j, taken := named[p.Name]; taken && p.Name != "" {
			return fmt.Errorf("Peers[%d].Name is %q, as that of Peers[%d]: each needs its own", i, p.Name, j)
		}
		named[p.Name] = i
		if p.Key != nil && p.Name == "" {
			return fmt.Errorf("Peers[%d].Name is missing: a Key needs the names of both ends", i)
		}
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
	room    int              // overhead that inner packets are cut for
	partial bool             // inner checksums may be left to the outer one
	change  sync.Mutex       // SetPeers and SetPeerKeys, one after the other
	gone    map[string]*peer // by name, see remember; behind change
	peers   *roster          // behind the lock of egress; changes need the other two locks, too
	from    *roster          // the same, behind the lock of ingress
}

func newTunnel(t Tunnel) (*tunnel, error) {
	if t.Time == nil {
		t.Time = time.Now
	}
	all, err := freshPeers(t.Peers, t.Name, t.Time(), func(string) *peer { return nil })
	if err != nil {
		return nil, err
	}
	r := newRoster(all, all)
	return &tunnel{Tunnel: t, room: t.overhead(), partial: !t.ZeroChecksum, peers: r, from: r, gone: make(map[string]*peer)}, nil
}

// authenticate gives a new peer its keys.
func (p *peer) authenticate(self string, now time.Time) (err error) {
	c := &p.Peer
	if c.Key == nil {
		if len(c.Accept) > 0 {
			return errors.New("Accept is given, but Key is missing: give both")
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
	if err := p.opener.SetKeys(*c.Key, c.Accept...); err != nil {
		return err
	}
	p.numbers, err = number(self, c.Name, append([]encap.UDPKey{*c.Key}, c.Accept...))
	return err
}

func newSealer(key encap.UDPKey, from, to string, now time.Time) (*encap.Sealer, error) {
	var salt [3]byte
	rand.Read(salt[:]) // never fails
	return encap.NewSealer(key, from, to, now, salt)
}

// pair returns the state towards an inner address. It has no group if no peer has the
// address.
func (t *tunnel) pair(table *pathTable, dst flowcell.Address) *pair {
	to := t.peers.behind(dst.IP())
	if to == nil {
		return &pair{dst: dst}
	}
	p := &pair{dst: dst, peer: to}
	table.bind(p, table.groups.ofTunnel(t.Underlay.Paths()))
	return p
}
