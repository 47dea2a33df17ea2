package schedulerd

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"time"

	"weft/flowcell"
	"weft/hedera"
	"weft/hedera/wire"
)

// What is reported and cannot be is refused under its name, and nothing of it is placed. The good flow of
// the same report is.
func TestServer_badReports(t *testing.T) {
	s, top := newTestServer(t, func(f hedera.Fabric) hedera.Fabric { return f })
	h := newHost(t, top, 0, s.file.listen)
	nobody := tupleOf(top, 0, 8)
	nobody.Dst = flowcell.AddressFrom(netip.MustParseAddr("192.0.2.1"))
	stranger := tupleOf(top, 0, 8)
	stranger.Src = flowcell.AddressFrom(netip.MustParseAddr("2001:db8::1"))
	stranger.Dst = flowcell.AddressFrom(netip.MustParseAddr("2001:db8::2"))
	good := tupleOf(top, 0, 8)
	bad := map[string][]wire.Flow{
		"ends":  {{Tuple: nobody, Rate: 5e8}, {Tuple: stranger, Rate: 5e8}}, // there are no such flows
		"node":  {{Tuple: tupleOf(top, 5, 12), Rate: 5e8}},                  // another host's
		"local": {{Tuple: tupleOf(top, 0, 1), Rate: 3e8}},
		"rate":  {{Tuple: tupleOf(top, 0, 9), Rate: 5e9}, {Tuple: tupleOf(top, 0, 9), Rate: 1<<64 - 1}},
		"small": {{Tuple: tupleOf(top, 0, 9), Rate: 0}},
	}
	flows := []wire.Flow{{Tuple: good, Rate: 9e8}}
	for _, list := range bad {
		flows = append(flows, list...)
	}
	before := s.status().Flows
	within(t, "a report is looked at", func() bool {
		return h.client.Send(wire.Report{Flows: flows}) && s.status().Flows > before
	})
	s.round()
	got := s.status()
	for reason, list := range bad {
		if n := got.Refused[reason]; n == 0 || n%uint64(len(list)) != 0 {
			t.Errorf("%d flows are refused as %s, want %d a report", n, reason, len(list))
		}
	}
	if len(got.Refused) != len(bad) || got.Known != 1 || got.Placed != 1 {
		t.Errorf("%d flows are known, %d placed; refused %v", got.Known, got.Placed, got.Refused)
	}
}

// Who is no host and no edge switch is not heard: a core switch, and an address of nobody.
func TestServer_hearsNobodyWhoIsNoSwitch(t *testing.T) {
	s, top := newTestServer(t, func(f hedera.Fabric) hedera.Fabric { return f })
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	core := top.Node(top.Paths(0, 15).Bounce(0)).Addr
	for i, address := range []netip.Addr{core, netip.MustParseAddr("192.0.2.7")} {
		node, err := wire.NewNode(wire.NodeConfig{Fabric: top.Fingerprint(), Address: address, Keys: testKeys,
			Servers: []netip.AddrPort{s.file.listen}, Random: rand.Uint64}, 0)
		if err != nil {
			t.Fatal(err)
		}
		now := time.Duration(0)
		within(t, "the hello is refused", func() bool {
			node.Poll(now, func(to netip.AddrPort, b []byte) { conn.WriteToUDPAddrPort(b, to) })
			return s.status().Rejected["node"] > uint64(i)
		})
	}
	if got := s.status(); got.Nodes != 0 || got.Flows != 0 {
		t.Errorf("%d nodes, %d flows", got.Nodes, got.Flows)
	}
}
