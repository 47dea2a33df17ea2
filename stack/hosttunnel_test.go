package stack

import (
	"errors"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weft/encap"
	"weft/internal/clock"
	"weft/internal/slowtest"
	"weft/link"
)

var tunnelAddrs = []netip.Addr{netip.MustParseAddr("10.200.0.1"), netip.MustParseAddr("10.200.0.2")}

// tunnelHosts are two Hosts of an ordinary user on the loopback interface.
func tunnelHosts(t testing.TB, policy string, change func(i int, c *Config)) (a, b *Host) {
	t.Helper()
	return tunnelHostsAt(t, "127.0.0.1:0", policy, change)
}

// tunnelHostsAt is tunnelHosts over sockets at an address.
func tunnelHostsAt(t testing.TB, at, policy string, change func(i int, c *Config)) (a, b *Host) {
	t.Helper()
	var under [2]*link.UDP
	for i := range under {
		u, err := link.OpenUDP(link.UDPConfig{Listen: netip.MustParseAddrPort(at), Paths: 8})
		if err != nil {
			t.Fatal(err)
		}
		under[i] = u
	}
	var hosts [2]*Host
	for i := range hosts {
		c := Config{Address: tunnelAddrs[i], Policy: policy, Simulation: Simulation{Seed: uint64(i + 1)}, Tunnel: &Tunnel{
			Underlay: under[i], Name: string(rune('a' + i)),
			Peers: []Peer{{Name: string(rune('b' - i)), Endpoint: under[1-i].LocalAddr(), Prefixes: []netip.Prefix{netip.PrefixFrom(tunnelAddrs[1-i], 32)}}},
		}}
		change(i, &c)
		h, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Close() })
		hosts[i] = h
	}
	return hosts[0], hosts[1]
}

func udpKey(id uint8) *encap.UDPKey { return &encap.UDPKey{ID: id, Secret: [32]byte{id, 1}} }

// hidingKey is one that encrypts, with another cipher for each other ID.
func hidingKey(id uint8) *encap.UDPKey {
	k := udpKey(id)
	k.Cipher = encap.UDPAESGCM + encap.UDPCipher(id%2)
	return k
}

func TestTunnel_transfers(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(int, *Config)
	}{
		{"presto", func(int, *Config) {}},
		{"drb", func(int, *Config) {}},
		{"ecmp", func(int, *Config) {}},
		{"letflow", func(int, *Config) {}},
		{"presto", func(_ int, c *Config) { c.Tunnel.Peers[0].Key = udpKey(1) }},
		{"drb", func(_ int, c *Config) { c.Tunnel.Peers[0].Key = udpKey(1) }},
		{"presto", func(_ int, c *Config) { c.Tunnel.Peers[0].Key = hidingKey(1) }},
		{"drb", func(_ int, c *Config) { c.Tunnel.Peers[0].Key = hidingKey(2) }},
		{"presto", func(_ int, c *Config) { c.Tunnel.Peers[0].Key, c.Tunnel.ZeroChecksum = hidingKey(2), true }},
		{"presto", func(_ int, c *Config) { c.Tunnel.ZeroChecksum = true }},
	} {
		a, b := tunnelHosts(t, c.name, c.change)
		transferHashed(t, a, b, 10e6, func(int) {})
		out, in := a.Stats(), b.Stats()
		paths := 0
		for _, p := range out.Paths {
			if p.Packets > 100 {
				paths++
			}
		}
		// How many flowlets there are is the machine's to say.
		if many := c.name != "ecmp" && c.name != "letflow"; many && paths != 8 || c.name == "ecmp" && paths > 1 {
			t.Errorf("%s: by %d paths: %+v", c.name, paths, out.Paths)
		}
		if in.Tunnel.Datagrams < 7000 || in.Tunnel.Malformed+in.Tunnel.Forged+in.Tunnel.Replayed+in.Tunnel.UnknownPeer+in.Tunnel.BadChecksum > 0 {
			t.Errorf("%s: %+v", c.name, in.Tunnel)
		}
		if c.name == "presto" && (in.Ingress.Supers < 100 || in.Resequencer.FlowsNumbered == 0) {
			t.Errorf("%+v\n%+v", in.Ingress, in.Resequencer)
		}
		if out.Egress.Supers < 50 {
			t.Errorf("%s: %+v", c.name, out.Egress)
		}
	}
}

// IPv6 inside, over UDP in IPv4 and in IPv6.
func TestTunnel_carries6(t *testing.T) {
	six := []netip.Addr{netip.MustParseAddr("2001:db8:200::1"), netip.MustParseAddr("2001:db8:200::2")}
	for _, under := range []string{"127.0.0.1:0", "[::1]:0"} {
		for _, name := range []string{"presto", "drb", "letflow"} {
			a, b := tunnelHostsAt(t, under, name, func(i int, c *Config) {
				p := &c.Tunnel.Peers[0]
				c.Address6, p.Key = six[i], udpKey(1)
				if name == "letflow" {
					p.Key = hidingKey(1)
				}
				p.Prefixes = append(p.Prefixes, netip.PrefixFrom(six[1-i], 128))
			})
			l, err := b.Listen("tcp6", ":80")
			if err != nil {
				t.Fatal(err)
			}
			roundTrip(t, a, l, "tcp", netip.AddrPortFrom(six[1], 80).String(), 3_000_000)
			if in := b.Stats(); in.Tunnel.Malformed+in.Tunnel.Forged+in.Tunnel.UnknownPeer+in.Tunnel.BadChecksum > 0 || name == "presto" && in.Resequencer.FlowsNumbered == 0 {
				t.Errorf("%s over %s: %+v, %+v", name, under, in.Tunnel, in.Resequencer)
			}
			a.Close()
			b.Close()
		}
	}
}

// Datagrams that are sprayed come in order, for the header counts them.
func TestTunnel_datagramsInOrder(t *testing.T) {
	a, b := tunnelHosts(t, "drb", func(_ int, c *Config) { c.SprayDatagrams = true })
	to, err := b.ListenPacket("udp", b.Address().String()+":7")
	if err != nil {
		t.Fatal(err)
	}
	from, err := a.ListenPacket("udp", a.Address().String()+":0")
	if err != nil {
		t.Fatal(err)
	}
	const n = 200
	go func() {
		for i := range n {
			from.WriteTo([]byte{byte(i)}, to.LocalAddr())
			if i%16 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
	}()
	buf := make([]byte, 100)
	to.SetReadDeadline(time.Now().Add(time.Minute))
	for i := range n {
		k, _, err := to.ReadFrom(buf)
		if err != nil || k != 1 || buf[0] != byte(i) {
			t.Fatalf("datagram %d: % x, %v", i, buf[:k], err)
		}
	}
	used := 0
	for _, p := range a.Stats().Paths {
		if p.Packets > 0 {
			used++
		}
	}
	if used != 8 {
		t.Errorf("%d paths carried datagrams", used)
	}
	if s := b.Stats().Resequencer; s.InOrder+s.Filled < n {
		t.Errorf("the resequencer has not seen them: %+v", s)
	}
}

// Keys roll over without a connection noticing; a peer without the key gets
// nothing through.
func TestTunnel_keys(t *testing.T) {
	a, b := tunnelHosts(t, "presto", func(i int, c *Config) {
		c.Tunnel.Peers[0].Key = udpKey(1)
		if i == 1 { // has rolled over already, and still accepts the old one
			c.Tunnel.Peers[0].Key, c.Tunnel.Peers[0].Accept = udpKey(2), []encap.UDPKey{*udpKey(1)}
		} else {
			c.Tunnel.Peers[0].Key, c.Tunnel.Peers[0].Accept = udpKey(1), []encap.UDPKey{*udpKey(2)}
		}
	})
	transferHashed(t, a, b, 1e6, func(int) {})

	for name, change := range map[string]func(i int, c *Config){
		"another key": func(i int, c *Config) { c.Tunnel.Peers[0].Key = udpKey(uint8(3 + i)) },
		"one without": func(i int, c *Config) {
			if i == 1 {
				c.Tunnel.Peers[0].Key = udpKey(1)
			}
		},
	} {
		a, b := tunnelHosts(t, "presto", change)
		if _, err := a.DialContext(ctxWithTimeout(t), "tcp", b.Address().String()+":9"); !errors.Is(err, os.ErrDeadlineExceeded) && !strings.Contains(err.Error(), "i/o timeout") && !strings.Contains(err.Error(), "deadline") {
			t.Errorf("%s: dialling ends with %v", name, err)
		}
		if s := b.Stats().Tunnel; s.Forged == 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// While data flows both ends go from one key to the next, twelve times, and nothing is
// refused. Meanwhile the clock of one end jumps.
func TestTunnel_keysRollOverUnderLoad(t *testing.T) {
	slowtest.System(t)
	t.Run("MAC", func(t *testing.T) { keysRollOver(t, udpKey) })
	t.Run("encryption", func(t *testing.T) { keysRollOver(t, hidingKey) })
}

func keysRollOver(t *testing.T, key func(id uint8) *encap.UDPKey) {
	var jump atomic.Int64
	a, b := tunnelHosts(t, "presto", func(i int, c *Config) {
		c.Tunnel.Peers[0].Key = key(1)
		c.Tunnel.Time = func() time.Time { return time.Now().Add(time.Duration(i) * time.Duration(jump.Load())) }
	})
	ends := []struct {
		*Host
		peer string
	}{{a, "b"}, {b, "a"}}
	const keys = 12
	done, ended := make(chan struct{}), make(chan struct{})
	var rolled atomic.Int64
	go func() {
		defer close(ended)
		for id := uint8(1); ; id++ {
			jump.Store(int64([]time.Duration{time.Hour, -time.Hour, 24 * time.Hour, -24 * time.Hour, 0}[id%5]))
			for step, pair := range [][]*encap.UDPKey{{key(id), key(id + 1)}, {key(id + 1), key(id)}, {key(id + 1)}} {
				if step == 2 { // what was sent before has arrived once this has
					transferHashed(t, a, b, 100, func(int) {})
				}
				for _, end := range ends {
					var accept []encap.UDPKey
					for _, k := range pair[1:] {
						accept = append(accept, *k)
					}
					if err := end.SetPeerKeys(end.peer, pair[0], accept...); err != nil {
						t.Error(err)
					}
				}
			}
			rolled.Add(1)
			select {
			case <-done:
				return
			default:
			}
		}
	}()
	// On a busy machine a transfer sees fewer of them.
	for n := 0; n < 6 || rolled.Load() < keys && n < 60; n++ {
		transferHashed(t, a, b, 12e6, func(int) { time.Sleep(time.Millisecond) })
	}
	close(done)
	<-ended
	if n := rolled.Load(); n < keys {
		t.Errorf("only %d keys", n)
	}
	for _, h := range []*Host{a, b} {
		if s := h.Stats().Tunnel; s.Forged+s.Replayed+s.Malformed > 0 || s.Datagrams < 1000 {
			t.Errorf("%+v", s)
		}
	}
}

func TestSetPeerKeys_whatCannotBe(t *testing.T) {
	a, b := tunnelHosts(t, "presto", func(i int, c *Config) {
		if i == 0 {
			c.Tunnel.Peers[0].Key = udpKey(1)
		}
	})
	for name, err := range map[string]error{
		"nobody": a.SetPeerKeys("c", udpKey(2)),
		"none":   a.SetPeerKeys("b", nil),
		"had":    b.SetPeerKeys("a", udpKey(2)),
		"twice":  a.SetPeerKeys("b", udpKey(2), *udpKey(2)),
		"longer": a.SetPeerKeys("b", hidingKey(2)),
		"later":  a.SetPeerKeys("b", udpKey(1), *hidingKey(2)),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// narrowUnderlay refuses what is too long, as the kernel does once a router has said so.
type narrowUnderlay struct {
	*link.UDP
	most    atomic.Int64 // bytes of a datagram
	refused atomic.Int64
}

func (u *narrowUnderlay) Send(path int, to netip.AddrPort, tos byte, parts [][]byte, size int) error {
	if int64(size) > u.most.Load() {
		u.refused.Add(1)
		return link.ErrMessageSize
	}
	return u.UDP.Send(path, to, tos, parts, size)
}

// A router between the ends has a smaller MTU than the tunnel is configured with, and
// says so: the kernel refuses long datagrams from then on. TCP goes on in shorter ones.
func TestTunnel_aSmallerMTUOnTheWay(t *testing.T) {
	var under [2]*narrowUnderlay
	a, b := tunnelHosts(t, "presto", func(i int, c *Config) {
		c.Tunnel.Peers[0].Key = udpKey(1)
		under[i] = &narrowUnderlay{UDP: c.Tunnel.Underlay.(*link.UDP)}
		under[i].most.Store(1 << 20)
		c.Tunnel.Underlay = under[i]
	})
	transferHashed(t, a, b, 1e6, func(sent int) {
		if sent > 3e5 {
			for _, u := range under {
				u.most.Store(1300 - 28)
			}
		}
	})
	if s := a.Stats().Egress; s.Narrowed == 0 || under[0].refused.Load() == 0 || under[0].refused.Load() > 100 {
		t.Errorf("%d calls refused; %+v", under[0].refused.Load(), s)
	}
}

// What an unknown peer sends, or a known one for somebody else, is counted and
// forgotten.
func TestTunnel_onlyKnownPeers(t *testing.T) {
	_, b := tunnelHosts(t, "presto", func(i int, c *Config) {
		if i == 1 {
			c.Tunnel.Peers[0].Endpoint = netip.MustParseAddrPort("127.0.0.9:4000") // but it sends from 127.0.0.1
		}
	})
	u, err := link.OpenUDP(link.UDPConfig{Listen: netip.MustParseAddrPort("127.0.0.1:0"), Paths: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	to := b.below.(*link.UDP).LocalAddr()
	inner := dataPacket(1, 10)
	for _, src := range []netip.Addr{tunnelAddrs[0], netip.MustParseAddr("10.9.9.9")} {
		p := append(make([]byte, encap.UDPOverhead), inner...)
		encap.PutUDP(p, encap.UDPHeader{})
		a := src.As4()
		copy(p[encap.UDPOverhead+12:], a[:])
		if err := u.Send(0, to, 0, [][]byte{p}, 0); err != nil {
			t.Fatal(err)
		}
	}
	u.Send(0, to, 0, [][]byte{{1, 2, 3}}, 0)
	for range 200 {
		if s := b.Stats().Tunnel; s.Datagrams == 3 {
			if s.UnknownPeer != 3 {
				t.Errorf("%+v", s)
			}
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%+v", b.Stats().Tunnel)
}

// A peer sends only what is its own, though nobody can see that before it is decrypted; and
// what it has sent once counts once.
func TestTunnel_aPeersOwnPackets(t *testing.T) {
	key := hidingKey(1)
	_, b := tunnelHosts(t, "presto", func(i int, c *Config) {
		c.Tunnel.Peers[0].Key = key
		c.Tunnel.Peers = append(c.Tunnel.Peers, Peer{Name: "c", Endpoint: netip.MustParseAddrPort("127.0.0.1:4001"), Key: hidingKey(2),
			Prefixes: []netip.Prefix{netip.MustParsePrefix("10.200.7.0/24")}})
	})
	u, err := link.OpenUDP(link.UDPConfig{Listen: netip.MustParseAddrPort("127.0.0.1:0"), Paths: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	s, err := encap.NewSealer(*key, "a", "b", time.Now(), [3]byte{})
	if err != nil {
		t.Fatal(err)
	}
	for _, src := range []string{"10.200.0.1", "10.200.7.1", "10.9.9.9"} {
		p := append(make([]byte, s.Overhead()), dataPacket(1, 10)...)
		a := netip.MustParseAddr(src).As4()
		copy(p[s.Overhead()+12:], a[:])
		if err := s.Seal(p, encap.UDPHeader{}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := u.Send(0, b.below.(*link.UDP).LocalAddr(), 0, [][]byte{p}, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 1000 {
		if s := b.Stats().Tunnel; s.Datagrams == 6 {
			if s.UnknownPeer != 2 || s.Replayed != 3 {
				t.Errorf("%+v", s)
			}
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%+v", b.Stats().Tunnel)
}

func TestNew_rejectsBadTunnels(t *testing.T) {
	u, err := link.OpenUDP(link.UDPConfig{Listen: netip.MustParseAddrPort("127.0.0.1:0"), Paths: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	peer := Peer{Endpoint: netip.MustParseAddrPort("127.0.0.1:4000"), Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	for want, change := range map[string]func(c *Config){
		"Tunnel.Underlay":          func(c *Config) { c.Tunnel.Underlay = nil },
		"Topology":                 func(c *Config) { c.Topology = fatTree },
		"Address":                  func(c *Config) { c.Address = netip.MustParseAddr("fd00::1") },
		"Peers[0].Endpoint":        func(c *Config) { c.Tunnel.Peers[0].Endpoint = netip.AddrPort{} },
		"Peers[0].Prefixes":        func(c *Config) { c.Tunnel.Peers[0].Prefixes = nil },
		"10.0.0.0/8 is Peers[0]'s": func(c *Config) { c.Tunnel.Peers = append(c.Tunnel.Peers, peer) },
		"Peers[0].Name":            func(c *Config) { c.Tunnel.Peers[0].Key = udpKey(1) },
		"Peers[0]: encap":          func(c *Config) { c.Tunnel.Peers[0].Key, c.Tunnel.Peers[0].Name, c.Tunnel.Name = udpKey(1), "a", "a" },
		"Accept":                   func(c *Config) { c.Tunnel.Peers[0].Accept = []encap.UDPKey{*udpKey(1)} },
		"Clock":                    func(c *Config) { c.Simulation.Clock = clock.Real() },
	} {
		c := Config{Address: tunnelAddrs[0], Tunnel: &Tunnel{Underlay: u, Peers: []Peer{peer}}}
		change(&c)
		if h, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; does not name %s", err, want)
			if h != nil {
				h.Close()
			}
		}
	}
}
