package stack

import (
	"strings"
	"testing"

	"weft/flowcell"
	"weft/policy"
	"weft/topology"
)

// A unit under way does not go on by a path of another fabric, or of another
// policy's, whatever number that has.
func TestReplace_unitsUnderWayBeginAnew(t *testing.T) {
	wide, err := topology.Parse("fat-tree:k=6")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range policy.Names() {
		for port := range uint16(20) {
			e := testEgress(t, wide, name)
			packet := dataPacket(port, 1000)
			wrapOne(t, e, packet, 0)
			e.setTopology(fatTree)
			wrapOne(t, e, packet, 0)
			e.setPolicy(e.paths.policy, e.awareConfig, e.uplink)
			wrapOne(t, e, packet, 0)
			var pkt flowcell.Packet
			_ = pkt.Parse(packet)
			if f := e.flows.Get(&pkt.Flow, 0); f != nil && !e.paths.to(pkt.Flow.Dst).group.has(f.via) {
				t.Fatalf("%s: flow %d goes by path %d of before", name, port, f.via.index)
			}
			e.paths.groups.addTo(e.past)
			sum := uint64(0)
			for _, p := range e.past {
				sum += p.Packets
			}
			if sum != 3 {
				t.Fatalf("%s: %d packets of 3 are counted", name, sum)
			}
		}
	}
}

// A rate that no policy can go by is refused, though the first topology has its own.
func TestNew_absurdLinkRate(t *testing.T) {
	rated, err := topology.Parse("fat-tree:k=4,fabric-rate=1000,host-rate=1000")
	if err != nil {
		t.Fatal(err)
	}
	for _, rate := range []float64{-1, 1, 999, 2e13} {
		if h, err := New(Config{Address: addrA, Topology: rated, Device: &tape{}, Policy: "luopan", LinkRateBits: rate, Clock: &handClock{}}); err == nil {
			h.Close()
			t.Errorf("%v bit/s is taken", rate)
		} else if !strings.Contains(err.Error(), "LinkRateBits") {
			t.Error(err)
		}
	}
}
