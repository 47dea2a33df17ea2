package stack

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"weft/encap"
	"weft/link"
)

// switchError is an ICMP error of the switch 10.0.2.1 about a packet that went
// to a bouncing switch, of which it quotes so many bytes at most.
func switchError(kind, code byte, mtu uint16, bounce netip.Addr, inner []byte, quoted int) []byte {
	outer, err := encap.NewIPIP(netip.AddrFrom4([4]byte(inner[12:16])), bounce)
	if err != nil {
		panic(err)
	}
	quote := append(make([]byte, encap.Overhead), inner...)
	if err := outer.Encapsulate(quote, 1); err != nil {
		panic(err)
	}
	b := append(make([]byte, 28), quote[:min(quoted, len(quote))]...)
	b[0], b[8], b[9] = 0x45, 63, 1
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	copy(b[12:], []byte{10, 0, 2, 1})
	copy(b[16:20], inner[12:16])
	b[20], b[21] = kind, code
	binary.BigEndian.PutUint16(b[26:], mtu)
	binary.BigEndian.PutUint16(b[22:], ^checksum.Checksum(b[20:], 0))
	return fixed(b)
}

// One spine's links are smaller than all others: its switch says so, of a packet
// that TCP has not sent, and TCP sends smaller ones by all paths from then on.
func TestHost_learnsThePathMTU(t *testing.T) {
	w := newWire(t)
	const mtu = 1400
	small, tooLong := fatTree.Paths(0, 15).Addr(2), 0
	w.delay = func(s sighting, packet []byte, send func([]byte)) {
		if s.bounce != small || len(packet)+encap.Overhead <= mtu {
			send(packet)
			return
		}
		w.mu.Lock()
		back := w.ends[netip.AddrFrom4([4]byte(packet[12:16]))]
		tooLong++
		w.mu.Unlock()
		back.Write([][]byte{switchError(3, 4, mtu, s.bounce, packet, 548)}, 0)
	}
	a, b := newHost(t, w, addrA), newHost(t, w, addrB)
	transfer(t, a, b, 2_000_000)
	s := a.Stats().Ingress
	if s.Relayed == 0 || s.Relayed != uint64(tooLong) {
		t.Errorf("%d packets were too long; %+v", tooLong, s)
	}
	// Only what was on its way when the first error came could be too long, too.
	if tooLong > 100 {
		t.Errorf("%d packets were too long", tooLong)
	}
}

// What programs get of a switch's complaint.
func TestGateway_relaysTunnelErrors(t *testing.T) {
	programs, kernel := superPair(1500)
	fabric, uplink := superPair(1500)
	self := fatTree.Node(0).Addr
	g, err := NewGateway(GatewayConfig{Address: self, Topology: fatTree, Programs: programs, Fabric: fabric, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	defer kernel.Close()
	defer uplink.Close()
	inner := func(protocol byte) []byte {
		b := dataPacket(1, 1000)
		copy(b[12:], self.AsSlice())
		b[9] = protocol
		return fixed(b)
	}
	core := fatTree.Paths(0, 15).Addr(1)
	const tcp, udp = 6, 17
	bufs, sizes := [][]byte{make([]byte, link.SuperHeadroom+1500)}, make([]int, 1)
	for _, c := range []struct {
		name       string
		packet     []byte
		kind, code byte // of what programs get; 0: nothing
		mtu        uint16
	}{
		{"too big", switchError(3, 4, 1400, core, inner(tcp), 548), 3, 4, 1380},
		{"too big, of UDP", switchError(3, 4, 1400, core, inner(udp), 548), 3, 4, 1380},
		{"unreachable", switchError(3, 1, 0, core, inner(tcp), 548), 0, 0, 0},
		{"unreachable, of UDP", switchError(3, 0, 0, core, inner(udp), 548), 3, 0, 0},
		{"time exceeded", switchError(11, 0, 0, core, inner(tcp), 548), 0, 0, 0},
		{"time exceeded, of UDP", switchError(11, 0, 0, core, inner(udp), 548), 3, 1, 0},
		{"too short a quote", switchError(3, 4, 1400, core, inner(tcp), 28), 0, 0, 0},
	} {
		before := g.Stats().Ingress
		for _, b := range [][]byte{c.packet, plainError(self)} { // the second always comes through
			if n, err := uplink.WriteSuper([][]byte{append(make([]byte, link.SuperHeadroom), b...)}, link.SuperHeadroom); n != 1 {
				t.Fatal(err)
			}
		}
		if _, err := kernel.ReadSuper(bufs, sizes, link.SuperHeadroom); err != nil {
			t.Fatal(err)
		}
		got := bufs[0][link.SuperHeadroom:][:sizes[0]]
		if c.kind != 0 {
			quote := got[28:]
			if !header.IPv4(got).IsChecksumValid() || checksum.Checksum(got[20:], 0) != 0xffff || got[20] != c.kind || got[21] != c.code ||
				binary.BigEndian.Uint16(got[26:]) != c.mtu || [4]byte(got[12:16]) != [4]byte{10, 0, 2, 1} ||
				len(quote) != 528 || string(quote) != string(inner(quote[9])[:528]) {
				t.Errorf("%s: got %x", c.name, got)
			}
			if _, err := kernel.ReadSuper(bufs, sizes, link.SuperHeadroom); err != nil {
				t.Fatal(err)
			}
			got = bufs[0][link.SuperHeadroom:][:sizes[0]]
		}
		if string(got) != string(plainError(self)) {
			t.Errorf("%s: then got %x", c.name, got)
		}
		after := g.Stats().Ingress
		if relayed := after.Relayed - before.Relayed; (relayed == 1) != (c.kind != 0) || relayed+after.PathErrors-before.PathErrors != 1 {
			t.Errorf("%s: %+v, then %+v", c.name, before, after)
		}
	}
}

// plainError is one about a packet that has no outer header.
func plainError(to netip.Addr) []byte {
	inner := dataPacket(1, 10)
	copy(inner[12:], to.AsSlice())
	b := switchError(3, 4, 1400, to, inner, 100)
	copy(b[28:], fixed(inner))
	b = b[:28+len(inner)]
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	b[22], b[23] = 0, 0
	binary.BigEndian.PutUint16(b[22:], ^checksum.Checksum(b[20:], 0))
	return fixed(b)
}

// Nobody can make a Host send a byte a packet.
func TestHost_doesNotBelieveTinyMTUs(t *testing.T) {
	w := newWire(t)
	h := newHost(t, w, addrA)
	plain := func(kind, code byte, mtu uint16) []byte {
		b := append(make([]byte, 28), dataPacket(1, 100)[:48]...)
		b[0], b[8], b[9] = 0x45, 63, 1
		binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
		copy(b[12:], []byte{10, 0, 2, 1})
		self := addrA.As4()
		copy(b[16:20], self[:])
		b[20], b[21] = kind, code
		binary.BigEndian.PutUint16(b[26:], mtu)
		binary.BigEndian.PutUint16(b[22:], ^checksum.Checksum(b[20:], 0))
		return fixed(b)
	}
	dropped := uint64(0)
	for _, c := range []struct {
		kind, code byte
		mtu        uint16
		drop       bool
	}{
		{3, 4, 1400, false}, {3, 4, 552, false}, {3, 4, 551, true}, {3, 4, 68, true}, {3, 4, 0, true},
		{3, 3, 0, false}, {11, 4, 0, false}, {8, 4, 0, false},
	} {
		h.Receive(plain(c.kind, c.code, c.mtu))
		if c.drop {
			dropped++
		}
		if s := h.Stats().Ingress; s.PathErrors != dropped {
			t.Errorf("type %d, code %d, MTU %d: %+v", c.kind, c.code, c.mtu, s)
		}
	}
}
