package membership

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"weft/encap"
	"weft/link"
	"weft/mesh"
	"weft/mesh/join"
	"weft/mesh/open"
	"weft/stack"
)

// prefix is where the hosts register.
const prefix = "/weft/mesh/bench"

// host is one that is in the mesh.
type host struct {
	b       *bed
	n       int
	name    string
	address netip.Addr
	*stack.Host
	tap     *tap
	session *join.Session
	etcd    *valve
	relays  []*relay
	beacons net.PacketConn
	ends    chan struct{}  // closed at the stack's end
	all     sync.WaitGroup // its goroutines

	mu       sync.Mutex
	keys     []mesh.PrivateKey
	identity mesh.Identity
	rolls    time.Duration        // since when the key is being replaced
	renewed  int                  // keys
	peers    map[string]mesh.Peer // that the tunnel has
	removed  map[string]time.Duration
	known    map[string]bool // names that it has had as they are
	former   []formerKey
	seen     map[string]map[uint64]bool // beacons, by sender
	accepted uint64                     // bytes that should not have been
	control  int
	told     string // about accepted
}

// formerKey is one by which a peer was sent to.
type formerKey struct {
	peer string
	key  encap.UDPKey
}

// formerMost is how many are kept.
const formerMost = 16

func addressOf(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 200, byte(n >> 8), byte(n)})
}

// begin makes a host, with what a former one has kept, and has it join.
func (b *bed) begin(n int, former *host, k kind) (h *host, err error) {
	h = &host{b: b, n: n, name: fmt.Sprintf("h%05d", n), address: addressOf(n), etcd: newValve(), ends: make(chan struct{}),
		peers: make(map[string]mesh.Peer), removed: make(map[string]time.Duration), seen: make(map[string]map[uint64]bool), known: make(map[string]bool)}
	if former != nil {
		former.mu.Lock()
		h.keys, h.identity = former.keys, former.identity
		former.mu.Unlock()
	} else {
		h.keys, h.identity = []mesh.PrivateKey{mesh.NewPrivateKey(0)}, mesh.NewIdentity()
	}
	var directory join.Directory
	defer func() {
		if err == nil {
			return
		}
		if directory != nil {
			err = errors.Join(err, directory.Close())
		}
		if h.Host != nil {
			err = errors.Join(err, h.Host.Close())
		}
		h.closeRelays()
	}()
	var at []string
	for _, e := range b.cluster.clients {
		r, err := newRelay(e, false, h.etcd.pass)
		if err != nil {
			return nil, err
		}
		h.relays, at = append(h.relays, r), append(at, r.address())
	}
	u, err := link.OpenUDP(link.UDPConfig{Listen: netip.MustParseAddrPort("127.0.0.1:0"), Paths: 2})
	if err != nil {
		return nil, err
	}
	h.tap = &tap{UDP: u}
	if h.Host, err = stack.New(stack.Config{Address: h.address, Policy: "presto", Simulation: stack.Simulation{Seed: uint64(n + 1)},
		Tunnel: &stack.Tunnel{Underlay: h.tap, Name: h.name, Room: encap.UDPHiddenOverhead}}); err != nil {
		return nil, errors.Join(err, u.Close())
	}
	if h.beacons, err = h.Host.ListenPacket("udp", fmt.Sprint(":", beaconPort)); err != nil {
		return nil, err
	}
	if directory, err = open.Directory("etcd://"+strings.Join(at, ",")+prefix, open.Options{TTL: b.o.TTL}); err != nil {
		return nil, err
	}
	endpoint := u.LocalAddr()
	b.book.begin(k, h.name, b.now(), b.reached(), func(_ string, peers []mesh.Peer) bool {
		return slices.ContainsFunc(peers, func(p mesh.Peer) bool { return p.Name == h.name && p.Endpoint == endpoint })
	})
	b.add(h)
	if h.session, err = join.New(join.Config{Directory: directory, Name: h.name, Endpoints: []netip.AddrPort{endpoint}, Prefixes: []netip.Prefix{netip.PrefixFrom(h.address, 32)},
		Cipher: b.o.Cipher, Renew: b.o.Renew, Linger: b.o.Linger, Keys: h.keys, Identity: h.identity, KeepKeys: h.keep, SetPeers: h.setPeers, Heard: h.Host.PeerDatagrams, Log: slog.New(slog.DiscardHandler)}); err != nil {
		b.remove(h)
		return nil, err
	}
	h.all.Go(h.hear)
	h.all.Go(h.tell)
	return h, nil
}

// meets takes note that the host has taken a peer. A forged one tells it nothing of the name.
func (h *host) meets(p *mesh.Peer) {
	if !h.b.forged(h, p, h.known[p.Name]) {
		h.known[p.Name] = true
	}
}

// setPeers gives the tunnel its peers, and takes note.
func (h *host) setPeers(peers []mesh.Peer) error {
	h.mu.Lock()
	for _, p := range peers {
		delete(h.removed, p.Name) // what it sends counts from now on
		if _, forged := wayOf(p.Endpoint); forged {
			h.tap.note(p.Endpoint, h.known[p.Name])
		}
	}
	h.mu.Unlock()
	if err := h.Host.SetPeers(peers); err != nil {
		return err
	}
	now := h.b.now()
	h.mu.Lock()
	next := make(map[string]mesh.Peer, len(peers))
	for _, p := range peers {
		next[p.Name] = p
		h.meets(&p)
	}
	for name, p := range h.peers {
		q, ok := next[name]
		if !ok {
			h.removed[name] = now
		}
		if p.Key != nil && (!ok || *q.Key != *p.Key) {
			if len(h.former) >= formerMost {
				h.former = h.former[1:]
			}
			h.former = append(h.former, formerKey{name, *p.Key})
		}
	}
	h.peers = next
	h.mu.Unlock()
	h.b.book.act(h.name, now, peers)
	return nil
}

// keep takes note of the steps of a key.
func (h *host) keep(keys []mesh.PrivateKey) error {
	now := h.b.now()
	h.mu.Lock()
	began := h.rolls
	announces := len(keys) == 2 && len(h.keys) == 1
	if announces {
		h.rolls = now
	}
	if len(keys) == 1 && len(h.keys) == 2 {
		h.renewed++
	}
	h.keys = keys
	h.mu.Unlock()
	switch {
	case announces:
		generation := keys[1].Generation
		if !h.etcd.isCut() {
			h.b.book.begin(renews, h.name, now, h.b.reached(), func(host string, peers []mesh.Peer) bool { return knows(peers, h.name, host, generation) })
		}
	case len(keys) == 1 && began > 0:
		h.b.book.add(rolled, now-began)
	}
	return nil
}

// knows reports whether a host has a key with a peer for a generation of the peer's.
func knows(peers []mesh.Peer, peer, host string, generation uint8) bool {
	of := func(k *encap.UDPKey) bool {
		if peer < host {
			return k.ID>>4 == generation
		}
		return k.ID&15 == generation
	}
	for i := range peers {
		if p := &peers[i]; p.Name == peer && p.Key != nil {
			return of(p.Key) || slices.ContainsFunc(p.Accept, func(k encap.UDPKey) bool { return of(&k) })
		}
	}
	return false
}

// serve answers each connection with what it sends.
func (h *host) serve() error {
	l, err := h.Host.Listen("tcp", fmt.Sprint(":", echoPort))
	if err != nil {
		return err
	}
	h.all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			h.all.Go(func() { defer c.Close(); io.Copy(c, c) })
		}
	})
	return nil
}

const echoPort = 7

// leave has the host end as a program does that is asked to.
func (h *host) leave() error {
	return errors.Join(h.session.Close(), h.end())
}

// die has the host end without a word.
func (h *host) die() error {
	h.etcd.set(true)
	err := h.end()
	h.b.all.Go(func() { h.session.Close() }) // it waits for etcd in vain
	return err
}

// end ends the stack.
func (h *host) end() error {
	close(h.ends)
	err := h.Host.Close()
	h.all.Wait()
	return err
}

func (h *host) closeRelays() {
	for _, r := range h.relays {
		r.close()
	}
}

// present returns a peer as the host has it.
func (h *host) present(name string) (p mesh.Peer, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p, ok = h.peers[name]
	return p, ok
}
