package dataplane

import (
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
			e.SetTopology(fatTree)
			wrapOne(t, e, packet, 0)
			e.setPolicy(e.paths.policy, policy.Options{}, e.awareConfig, e.uplink)
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
