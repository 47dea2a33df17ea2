package dataplane

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"weft/encap"
	"weft/flowcell"
)

// Numbers go on one by one while time passes and when the clock is set back, and jump
// once when it is set ahead: only then is what is on its way too old.
func TestTunnel_numbersFollowTheClock(t *testing.T) {
	begin := time.Now()
	jump := time.Duration(0)
	now := begin
	tun, err := newTunnel(Tunnel{Name: "a", Time: func() time.Time { return now.Add(jump) }, Peers: []Peer{{Name: "b", Key: key(1),
		Endpoint: netip.MustParseAddrPort("192.0.2.1:1"), Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}}})
	if err != nil {
		t.Fatal(err)
	}
	s, p := newTunnelOutlet(nil, tun), tun.peers.all[0]
	number := func() uint64 {
		s.follow(p, now)
		b := make([]byte, encap.UDPSealedOverhead+40)
		if err := p.sealer.Seal(b, encap.UDPHeader{}); err != nil {
			t.Fatal(err)
		}
		return binary.BigEndian.Uint64(b[encap.UDPOverhead+4:])
	}
	last := number()
	for i := range 4000 {
		now = now.Add(10 * time.Millisecond)
		switch i {
		case 1000:
			jump = -time.Hour
		case 2000:
			jump = 24 * time.Hour
		case 3000:
			jump = -24 * time.Hour
		}
		n := number()
		ahead := i > 2000 && i <= 2100 && n > last+1
		if n != last+1 && !(ahead && n > uint64(begin.Add(23*time.Hour).UnixNano())) {
			t.Fatalf("datagram %d has number %d, the one before %d", i, n, last)
		}
		last = n
	}
	if last < uint64(begin.Add(23*time.Hour).UnixNano()) {
		t.Error("the numbers have not followed")
	}
}

// train is an Underlay that gives one train to read.
type train struct {
	Underlay
	b   []byte
	seg int
}

func (u *train) Receive(bufs [][]byte, sizes, segs []int, tos []byte, from []netip.AddrPort) (int, error) {
	sizes[0], segs[0], tos[0] = copy(bufs[0], u.b), u.seg, 0
	from[0] = netip.MustParseAddrPort("192.0.2.1:99")
	return 1, nil
}

// Whatever is in a train: nothing is lost but what is refused, nothing is made
// up, and what is merged can be cut again.
func FuzzTunnelSource(f *testing.F) {
	datagram := func(seq uint32, payload int) []byte {
		p := dataPacket(1, payload)
		p[27] = byte(seq)
		b := append(make([]byte, encap.UDPOverhead), fixed(p)...)
		encap.PutUDP(b, encap.UDPHeader{Flowcell: 64, Partial: true})
		return b
	}
	f.Add(append(append(datagram(0, 20), datagram(20, 20)...), datagram(40, 7)...), 72)
	f.Add(append(append(datagram(0, 20), datagram(90, 20)...), 1, 2, 3), 72)
	f.Add([]byte{0x12}, 1)
	tun, err := newTunnel(Tunnel{Peers: []Peer{{Endpoint: netip.MustParseAddrPort("192.0.2.1:1"), Prefixes: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte, seg int) {
		if len(b) > 65000 {
			return
		}
		s := newTunnelSource(tun)
		s.Underlay = &train{b: b, seg: max(seg, 1)}
		bufs := make([][]byte, superBatch)
		for i := range bufs {
			bufs[i] = make([]byte, SuperBuffer)
		}
		s.read(bufs)
		packets, payload := 0, 0
		for a, ok := s.next(); ok; a, ok = s.next() {
			if len(a.Bytes) == 0 {
				t.Fatal("an empty packet")
			}
			var pkt flowcell.Packet
			err := pkt.Parse(a.Bytes)
			if a.MSS > 0 {
				if err != nil || !pkt.IsTCP() || a.vnet.Check(len(a.Bytes)) != nil {
					t.Fatalf("%+v, %v", a, err)
				}
				packets += (int(pkt.Payload) + a.MSS - 1) / a.MSS
			} else {
				packets++
			}
			payload += len(a.Bytes)
		}
		if refused := s.stats.Malformed + s.stats.UnknownPeer + s.stats.BadChecksum + s.stats.Forged; uint64(packets)+refused != s.stats.Datagrams {
			t.Fatalf("%d packets of %+v", packets, s.stats)
		}
		if payload > len(b) {
			t.Fatalf("%d bytes of %d", payload, len(b))
		}
	})
}

func key(id uint8) *encap.UDPKey { return &encap.UDPKey{ID: id, Secret: [32]byte{id, 1}} }

// Who starts at the same moment, by the same key, has nonces of its own.
func TestNewSealer_salts(t *testing.T) {
	now := time.Now()
	seen := make(map[string]int)
	for i := range 4 {
		s, err := newSealer(*key(1), "a", "b", now)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, encap.UDPSealedOverhead+40)
		if err := s.Seal(b, encap.UDPHeader{}); err != nil {
			t.Fatal(err)
		}
		if j, again := seen[string(b[12:24])]; again {
			t.Errorf("starts %d and %d have nonce %x", j, i, b[12:24])
		}
		seen[string(b[12:24])] = i
	}
}

// Whatever is in a train of datagrams with a key: only what the peer has sealed comes out of
// it, and nothing does a second time.
func FuzzTunnelSource_sealed(f *testing.F) {
	const payload, segments = 20, 5
	at := netip.MustParseAddrPort("192.0.2.1:1")
	keyOf := func(which uint8) encap.UDPKey {
		k := *key(1)
		k.Cipher = []encap.UDPCipher{encap.UDPGMAC, encap.UDPAESGCM, encap.UDPChaCha20Poly1305}[which%3]
		return k
	}
	genuine := func(which uint8) (all []byte, size int) {
		s, err := encap.NewSealer(keyOf(which), "b", "a", time.Unix(1e9, 0), [3]byte{1})
		if err != nil {
			f.Fatal(err)
		}
		for i := range segments {
			p := dataPacket(1, payload)
			p[27] = byte(i * payload)
			for j := range payload {
				p[40+j] = byte(i*payload + j)
			}
			b := append(make([]byte, s.Overhead()), fixed(p)...)
			if err := s.Seal(b, encap.UDPHeader{Flowcell: 64, Partial: true}); err != nil {
				f.Fatal(err)
			}
			all, size = append(all, b...), len(b)
		}
		return all, size
	}
	for which := range uint8(3) {
		all, size := genuine(which)
		f.Add(all, uint16(size), which)
		f.Add(all[size:3*size], uint16(size), which)
		f.Add(append(all[:size:size], all...), uint16(size), which)
		f.Add(all[:len(all)-1], uint16(size), which)
		f.Add(all, uint16(size-1), which)
	}
	f.Fuzz(func(t *testing.T, b []byte, seg uint16, which uint8) {
		if len(b) > 65000 {
			return
		}
		k := keyOf(which)
		tun, err := newTunnel(Tunnel{Name: "a", Peers: []Peer{{Name: "b", Key: &k, Endpoint: at, Prefixes: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}}}})
		if err != nil {
			t.Fatal(err)
		}
		s := newTunnelSource(tun)
		bufs := make([][]byte, superBatch)
		seen := make(map[byte]bool)
		for range 2 {
			for i := range bufs {
				bufs[i] = make([]byte, SuperBuffer)
			}
			s.Underlay = &train{b: b, seg: max(int(seg), 1)}
			s.read(bufs)
			for a, ok := s.next(); ok; a, ok = s.next() {
				var pkt flowcell.Packet
				if err := pkt.Parse(a.Bytes); err != nil || !pkt.IsTCP() || pkt.Payload == 0 || pkt.Payload%payload != 0 {
					t.Fatalf("%x: %v", a.Bytes, err)
				}
				for i, got := range a.Bytes[40:] {
					if want := byte(int(pkt.Seq) + i); got != want || int(want) >= segments*payload || seen[want] {
						t.Fatalf("byte %d of the stream is %d, seen before: %v", want, got, seen[want])
					}
					seen[byte(int(pkt.Seq)+i)] = true
				}
			}
		}
		refused := s.stats.Malformed + s.stats.UnknownPeer + s.stats.BadChecksum + s.stats.Forged + s.stats.Replayed
		if accepted := uint64(len(seen) / payload); accepted+refused != s.stats.Datagrams {
			t.Fatalf("%d accepted of %+v", accepted, s.stats)
		}
	})
}
