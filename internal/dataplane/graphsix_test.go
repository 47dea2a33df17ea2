package dataplane

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"weft/encap"
	"weft/flowcell"
	"weft/internal/dataplane/dataplanetest"
	"weft/link"
	"weft/policy"
	"weft/topology"
	"weft/topology/graph"
	"weft/topology/graph/operator"
)

// In a fabric with an operator's addresses packets of each family go through outer headers of
// each, under every policy: 4in4, 6in4, 4in6 and 6in6.
func TestWrap_operatorsAddressesOfBothFamilies(t *testing.T) {
	for seed := range uint64(3) {
		g, err := graph.New(operator.Spec(fatTree, seed))
		if err != nil {
			t.Fatal(err)
		}
		near, far := g.Node(0), g.Node(graph.NodeID(g.NumHosts()-1))
		for _, self := range near.Addresses {
			topo, err := topology.FromGraph(g, self)
			if err != nil {
				t.Fatal(err)
			}
			for _, dst := range far.Addresses {
				for _, name := range policy.Names() {
					for _, carries := range []bool{true, false} {
						what := fmt.Sprintf("seed %d, %s: %v to %v, IPv6 carried: %v", seed, name, self, dst, carries)
						device, _ := link.NewPair(1500, 1)
						e, err := NewEgress(Config{Address: self, Topology: topo, Device: device, Policy: name, Samples: true, Seed: 1, Inner6: carries})
						if err != nil {
							t.Fatalf("%s: %v", what, err)
						}
						overhead := 20
						if self.Is6() {
							overhead = 40
						}
						if e.MTU() != 1500-overhead {
							t.Fatalf("%s: an MTU of %d", what, e.MTU())
						}
						ways := make(map[netip.Addr]bool)
						for i := range 200 {
							packet := packetTo(dst, uint32(i)*1000)
							out := e.wrapOne(append(make([]byte, encap.MaxOverhead), packet...), 0)
							if out == nil {
								t.Fatalf("%s: dropped: %+v", what, e.stats)
							}
							if dst.Is6() && !carries {
								if e.stats.Plain != uint64(i+1) {
									t.Fatalf("%s: %+v", what, e.stats)
								}
								continue
							}
							inner, way := bounced(t, out)
							ways[way] = true
							if len(out) != len(packet)+overhead || way.Is4() != self.Is4() || len(inner) != len(packet) || inner[0]>>4 != packet[0]>>4 {
								t.Fatalf("%s: %x", what, out[:80])
							}
						}
						flow := e.lane.unit.Kind == flowcell.UnitFlow || e.lane.unit.Kind == flowcell.UnitFlowlet
						if want := map[bool]int{true: 1, false: 4}[flow]; (carries || dst.Is4()) && len(ways) != want && name != "luopan" && name != "rand" && name != "local" {
							t.Errorf("%s: %d ways, want %d", what, len(ways), want)
						}
					}
				}
			}
		}
	}
}

// packetTo is a packet of data to an address of either family.
func packetTo(dst netip.Addr, seq uint32) []byte {
	if dst.Is4() {
		b := dataPacket(1, 1000)
		copy(b[16:], dst.AsSlice())
		binary.BigEndian.PutUint32(b[24:], seq)
		return fixed(b)
	}
	b := dataPacket6(1, 1000)
	copy(b[24:], dst.AsSlice())
	binary.BigEndian.PutUint32(b[44:], seq)
	return dataplanetest.WithTCPChecksum6(b)
}
