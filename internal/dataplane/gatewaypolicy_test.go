package dataplane

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
	"time"

	"weft/conga"
	"weft/encap"
	"weft/flowcell"
	"weft/link"
	"weft/policy"
)

// through sends a packet through a Gateway and returns what leaves it.
func through(t *testing.T, kernel *superMemory, packet []byte) []byte {
	t.Helper()
	if n, err := kernel.WriteSuper([][]byte{append(make([]byte, link.SuperHeadroom), packet...)}, link.SuperHeadroom); n != 1 {
		t.Fatal(err)
	}
	own := fatTree.EmbeddedAddr(0).As4()
	for {
		buf, size := make([]byte, link.SuperHeadroom+2000), []int{0}
		if n, err := kernel.ReadSuper([][]byte{buf}, size, link.SuperHeadroom); n != 1 {
			t.Fatal(err)
		}
		out := buf[link.SuperHeadroom : link.SuperHeadroom+size[0]]
		if out[0]>>4 == 6 || [4]byte(out[16:20]) != own { // else it has come for programs
			return out
		}
	}
}

// Whatever the policy was before: what the uplink's program does is left to it, and
// the rest encapsulated by either carrier; conga's packets have its mark.
func TestGateway_policiesAndCarriers(t *testing.T) {
	atUplink := []string{"ecmp", "presto", "flowcell-drb", "auto", "rand", "luopan"}
	for _, carrier := range []encap.Carrier{encap.CarrierIPIP, encap.CarrierSRv6} {
		kernel, tun := superPair(1500)
		g, err := NewGateway(GatewayConfig{Address: fatTree.EmbeddedAddr(0), Topology: fatTree, Programs: tun, Policy: "conga", Carrier: carrier, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		for round := range 2 {
			for i, name := range policy.Names() {
				if err := g.SetPolicy(name, policy.Options{}); err != nil {
					t.Fatal(err)
				}
				packet := dataPacket(uint16(1000*round+i), 1000)
				out := through(t, kernel, packet)
				want, inner := byte(6), out
				if !slices.Contains(atUplink, name) {
					inner, want = out[carrier.Overhead():], 4
				}
				got := out[9]
				if out[0]>>4 == 6 {
					got = out[6]
				}
				if got != want || len(inner) != len(packet) || (carrier == encap.CarrierSRv6) != (out[0]>>4 == 6) && want == 4 {
					t.Errorf("%v, %s: %d bytes, protocol %d, want %d", carrier, name, len(out), got, want)
					continue
				}
				if marked := inner[1]>>2 == conga.MarkDSCP; marked != (name == "conga") {
					t.Errorf("%v, %s: marked %t", carrier, name, marked)
				}
			}
		}
	}
}

// What receivers report to a Gateway decides which path its flowlets take, and
// Congestion tells of it.
func TestGateway_hearsReports(t *testing.T) {
	kernel, tun := superPair(1500)
	below, wire := superPair(1500)
	g, err := NewGateway(GatewayConfig{Address: fatTree.EmbeddedAddr(0), Topology: fatTree, Programs: tun, Fabric: below, Policy: "conga", Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	g.egress.mu.Lock()
	g.egress.clock = new(handClock) // on which reports do not grow old
	g.egress.mu.Unlock()
	first := dataPacket(1, 1000)
	through(t, kernel, first)
	// The peer says that all paths are full but the third.
	for tag := range uint8(4) {
		answer := dataPacket(1, 10)
		copy(answer[12:16], first[16:20])
		copy(answer[16:20], first[12:16])
		copy(answer[20:22], first[22:24])
		copy(answer[22:24], first[20:22])
		// Only who has seen what was sent can acknowledge it.
		binary.BigEndian.PutUint32(answer[28:], binary.BigEndian.Uint32(first[24:])+1000)
		answer[33] = flowcell.FlagACK
		metric := uint8(7)
		if tag == 2 {
			metric = 0
		}
		answer[1], answer[6] = conga.MarkDSCP<<2, 0x40
		binary.BigEndian.PutUint16(answer[4:], conga.Mark{Feedback: true, Tag: tag, Metric: metric}.Put())
		h := link.VnetHeader{Flags: link.VnetDataValid}
		buf := append(make([]byte, link.SuperHeadroom), fixed(answer)...)
		h.Put((*[link.VnetHeaderLen]byte)(buf[link.SuperHeadroom-link.VnetHeaderLen:]))
		if n, err := wire.WriteSuper([][]byte{buf}, link.SuperHeadroom); n != 1 {
			t.Fatal(err)
		}
	}
	known := func() (n int) {
		for _, c := range g.Congestion() {
			for _, tag := range c.Tags {
				if tag.Known {
					n++
				}
			}
		}
		return n
	}
	for end := time.Now().Add(time.Minute); known() < 4; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("known: %+v; %+v", g.Congestion(), g.Stats())
		}
	}
	fourth := netip.AddrFrom4([4]byte(first[16:20]))
	id, _ := fatTree.ByAddr(fourth)
	set := fatTree.Paths(0, id)
	for port := range uint16(8) {
		out := through(t, kernel, dataPacket(100+port, 1000))
		if got := netip.AddrFrom4([4]byte(out[16:20])); got != set.Addr(2) {
			t.Errorf("by %v, want %v: %+v", got, set.Addr(2), g.Congestion())
		}
	}
}

// A policy of a Gateway samples nothing: the prober does, and the program draws.
func TestGateway_doesNotSample(t *testing.T) {
	for name, want := range map[string]bool{"luopan": false, "rand": false, "drill": true} {
		_, tun := superPair(1500)
		g, err := NewGateway(GatewayConfig{Address: fatTree.Node(0).Addr, Topology: fatTree, Programs: tun, Policy: name})
		if err != nil {
			t.Fatal(err)
		}
		if e := g.egress; e.sampler != nil || (e.aware != nil) != want {
			t.Errorf("%s: goes by %T", name, e.aware)
		}
		g.SetPolicy("drill", policy.Options{})
		if _, ok := g.egress.aware.(*backlogged); !ok {
			t.Errorf("after %s drill goes by %T", name, g.egress.aware)
		}
		g.SetPolicy("drb", policy.Options{})
		if g.egress.aware != nil {
			t.Errorf("drb goes by %T", g.egress.aware)
		}
		g.Close()
	}
}
