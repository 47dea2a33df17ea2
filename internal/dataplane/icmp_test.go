package dataplane

import (
	"encoding/binary"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"weft/link"
)

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
