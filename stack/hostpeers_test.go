package stack

import (
	"bytes"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weft/encap"
	"weft/link"
)

// strangers are two tunnelHosts that do not know each other, and what each is to the other.
func strangers(t testing.TB) (hosts [2]*Host, peers [2]Peer) {
	t.Helper()
	hosts[0], hosts[1] = tunnelHosts(t, "presto", func(i int, c *Config) {
		peers[1-i] = c.Tunnel.Peers[0]
		c.Tunnel.Peers, c.Tunnel.Room = nil, encap.UDPHiddenOverhead
	})
	return hosts, peers
}

// meet makes both know each other, by a key.
func meet(t testing.TB, hosts [2]*Host, peers [2]Peer, key *encap.UDPKey, accept []encap.UDPKey, others ...Peer) {
	t.Helper()
	for i, h := range hosts {
		p := peers[1-i]
		p.Key, p.Accept = key, accept
		if err := h.SetPeers(append([]Peer{p}, others...)); err != nil {
			t.Fatal(err)
		}
	}
}

// Peers come and go. A connection with one that comes back goes on.
func TestSetPeers_comeAndGo(t *testing.T) {
	hosts, peers := strangers(t)
	a, b := hosts[0], hosts[1]
	if _, err := a.DialContext(ctxWithTimeout(t), "tcp", b.Address().String()+":9"); err == nil {
		t.Error("a stranger is reached")
	}
	meet(t, hosts, peers, hidingKey(1), nil)
	transferHashed(t, a, b, 1e6, func(int) {})

	l, err := b.Listen("tcp", ":7")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		c, err := l.Accept()
		if err == nil {
			io.Copy(c, c)
		}
	}()
	c, err := a.DialContext(ctxWithTimeout(t), "tcp", b.Address().String()+":7")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	echo(t, c, "before")
	if err := b.SetPeers(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "while"); err != nil {
		t.Fatal(err)
	}
	for b.Stats().Tunnel.UnknownPeer == 0 { // go test's limit is enough
		time.Sleep(time.Millisecond)
	}
	meet(t, hosts, peers, hidingKey(1), nil)
	read(t, c, "while")
	echo(t, c, "after")
}

func echo(t testing.TB, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	read(t, c, text)
}

func read(t testing.TB, c net.Conn, text string) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(time.Minute))
	b := make([]byte, len(text))
	if _, err := io.ReadFull(c, b); err != nil || !bytes.Equal(b, []byte(text)) {
		t.Fatalf("%q, %v, want %q", b, err, text)
	}
}

// While data flows others come and go and keys change, and nothing is refused.
func TestSetPeers_othersDoNotDisturb(t *testing.T) {
	hosts, peers := strangers(t)
	meet(t, hosts, peers, hidingKey(1), nil)
	done, ended := make(chan struct{}), make(chan struct{})
	var rounds atomic.Int64
	go func() {
		defer close(ended)
		for id := uint8(1); ; id++ {
			var others []Peer
			for i := range int(id) % 5 {
				others = append(others, Peer{Name: "other" + string(rune('0'+i)), Key: hidingKey(id), Endpoint: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(i+1)),
					Prefixes: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 201, byte(i), byte(id)}), 24).Masked()}})
			}
			meet(t, hosts, peers, hidingKey(id), []encap.UDPKey{*hidingKey(id + 1)}, others...)
			meet(t, hosts, peers, hidingKey(id+1), []encap.UDPKey{*hidingKey(id)}, others...)
			transferHashed(t, hosts[0], hosts[1], 100, func(int) {}) // what was sent before has arrived
			meet(t, hosts, peers, hidingKey(id+1), nil)
			rounds.Add(1)
			select {
			case <-done:
				return
			default:
			}
		}
	}()
	for n := 0; n < 3 || rounds.Load() < 10 && n < 60; n++ {
		transferHashed(t, hosts[0], hosts[1], 5e6, func(int) { time.Sleep(time.Millisecond) })
	}
	close(done)
	<-ended
	for _, h := range hosts {
		if s := h.Stats().Tunnel; s.Forged+s.Replayed+s.Malformed+s.UnknownPeer > 0 || s.Datagrams < 100 {
			t.Errorf("after %d rounds: %+v", rounds.Load(), s)
		}
	}
}

// What cannot be is refused, and nothing has changed then.
func TestSetPeers_whatCannotBe(t *testing.T) {
	hosts, peers := strangers(t)
	meet(t, hosts, peers, hidingKey(1), nil)
	good := peers[1]
	good.Key = hidingKey(1)
	with := func(change func(*Peer)) []Peer {
		p := good
		p.Name, p.Prefixes = "c", []netip.Prefix{netip.MustParsePrefix("10.7.0.0/16")}
		change(&p)
		return []Peer{good, p}
	}
	for want, peers := range map[string][]Peer{
		"Peers[1].Name":            with(func(p *Peer) { p.Name = "b" }),
		"Peers[1].Prefixes":        with(func(p *Peer) { p.Prefixes = good.Prefixes }),
		"are missing":              with(func(p *Peer) { p.Prefixes = nil }),
		"Peers[1].Endpoint":        with(func(p *Peer) { p.Endpoint = netip.AddrPort{} }),
		"Secret of key 3":          with(func(p *Peer) { p.Key = &encap.UDPKey{ID: 3} }),
		"both ends of the key are": with(func(p *Peer) { p.Name = "a" }),
		"key ID 1 is given twice":  with(func(p *Peer) { p.Key, p.Accept = udpKey(1), []encap.UDPKey{*udpKey(1)} }),
		"Accept is given":          with(func(p *Peer) { p.Key, p.Accept = nil, []encap.UDPKey{*udpKey(1)} }),
		"at most":                  make([]Peer, 1<<16+1),
	} {
		if err := hosts[0].SetPeers(peers); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "SetPeers") {
			t.Errorf("want %q, got %v", want, err)
		}
		transferHashed(t, hosts[0], hosts[1], 1000, func(int) {})
	}
	a, _ := tunnelHosts(t, "presto", func(int, *Config) {})
	if err := a.SetPeers([]Peer{good}); err == nil || !strings.Contains(err.Error(), "Room") {
		t.Errorf("without Room: %v", err)
	}
	if u, err := link.OpenUDP(link.UDPConfig{Listen: netip.MustParseAddrPort("127.0.0.1:0"), Paths: 1}); err != nil {
		t.Fatal(err)
	} else if _, err := New(Config{Address: tunnelAddrs[0], Tunnel: &Tunnel{Underlay: u, Room: 45}}); err == nil || !strings.Contains(err.Error(), "Room is 45") {
		t.Errorf("too much Room: %v", err)
	}
}

// What a peer sent before it went is not taken again when it has come back.
func TestSetPeers_remembersWhoHasGone(t *testing.T) {
	key := hidingKey(1)
	hosts, peers := strangers(t)
	meet(t, hosts, peers, key, nil)
	b := hosts[1]
	u, err := link.OpenUDP(link.UDPConfig{Listen: netip.MustParseAddrPort("127.0.0.1:0"), Paths: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	s, err := encap.NewSealer(*key, "a", "b", time.Now(), [3]byte{})
	if err != nil {
		t.Fatal(err)
	}
	p := append(make([]byte, s.Overhead()), dataPacket(1, 10)...)
	a := tunnelAddrs[0].As4()
	copy(p[s.Overhead()+12:], a[:])
	if err := s.Seal(p, encap.UDPHeader{}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		before := b.Stats().Tunnel
		if err := u.Send(0, b.below.(*link.UDP).LocalAddr(), 0, [][]byte{p}, 0); err != nil {
			t.Fatal(err)
		}
		for b.Stats().Tunnel.Datagrams == before.Datagrams { // go test's limit is enough
			time.Sleep(time.Millisecond)
		}
		if s := b.Stats().Tunnel; s.Replayed != uint64(i) || s.Forged > 0 {
			t.Errorf("time %d: %+v", i, s)
		}
		if err := b.SetPeers(nil); err != nil {
			t.Fatal(err)
		}
		meet(t, hosts, peers, key, nil)
	}
}
