package dataplane

import (
	"encoding/binary"
	"net/netip"
	"strings"
	"testing"

	"weft/encap"
	"weft/flowcell"
	"weft/link"
	"weft/topology"
)

func bySRv6(c *Config) { c.Carrier = encap.CarrierSRv6 }

// A buffer has room for the longest packet, by either carrier.
func TestNewEgress_buffersFitTheCarrier(t *testing.T) {
	for _, change := range [][]func(*Config){nil, {bySRv6}} {
		near, _ := link.NewPair(1500, 1)
		e := testEgress(t, fatTree, "drb", append(change, func(c *Config) { c.Device = near })...)
		if n := len(e.outlet.(*plainOutlet).bufs[0]); n < link.SuperHeadroom+1500 || n > Headroom+1500 || e.longest != 1500-e.config.Carrier.Overhead() {
			t.Errorf("%v: a buffer has %d bytes for packets of %d", e.config.Carrier, n, e.longest)
		}
	}
}

// What is put together of a path's part of the labels and a rack's is what
// topology says of the path, for every pair, whichever links are down; and paths
// are shared as those of IP-in-IP are.
func TestPathOut_labelsAreTopologys(t *testing.T) {
	for _, spec := range []string{"fat-tree:k=4", "fat-tree:k=6", "fat-tree:k=8,hosts=1",
		"leaf-spine:leaves=3,spines=4,hosts=2", "leaf-spine:leaves=2,spines=1,hosts=1", "vl2:d0=4,d1=4,d2=8,hosts=2"} {
		fabric, err := topology.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		e := testEgress(t, fabric, "drb", bySRv6)
		from := topology.Addr6(fabric.EmbeddedAddr(0))
		most, byIPIP := 0, map[netip.Addr]bool{}
		for _, now := range []*topology.Topology{fabric, fabric.Without(fabric.Ports(fabric.EdgeOf(0))[len(fabric.Ports(fabric.EdgeOf(0)))-1].Link), fabric} {
			e.SetTopology(now)
			for host := range topology.NodeID(fabric.NumHosts()) {
				p := e.to(fabric, host)
				if p.direct {
					continue
				}
				set := now.PathsOrAll(0, host)
				most = max(most, set.Count())
				for _, n := range set.Live {
					byIPIP[set.Addr(n)] = true
					want, err := encap.SIDs(set.Choices(n))
					if err != nil {
						t.Fatal(err)
					}
					buf := append(make([]byte, encap.MaxOverhead), dataPacket(1, 10)...)
					out, err := p.group.out[n].encapsulate(buf, p.rack, 1)
					if err != nil {
						t.Fatal(err)
					}
					if got := netip.AddrFrom16([16]byte(out[24:])); got != want || netip.AddrFrom16([16]byte(out[8:])) != from {
						t.Fatalf("%s: path %d to %d has %v, want %v", spec, n, host, got, want)
					}
					if inner, err := encap.DecapsulateSRv6(out); err != nil || len(inner) != 50 {
						t.Fatalf("%s: path %d to %d: %v", spec, n, host, err)
					}
				}
			}
			checkGroups(t, e.paths)
		}
		// In VL2 the third label differs by the destination's aggregation switches.
		if bound := len(byIPIP) * max(1, strings.Count(spec, "vl2")*8); len(e.paths.groups.outs) > bound {
			t.Errorf("%s: %d paths are kept, by IP-in-IP %d are", spec, len(e.paths.groups.outs), len(byIPIP))
		}
	}
}

// walk follows labels from a host's edge switch, and returns the switches.
func walk(t *testing.T, fabric *topology.Topology, host topology.NodeID, ports []int) (visited []topology.NodeID) {
	t.Helper()
	at := fabric.EdgeOf(host)
	visited = append(visited, at)
	for _, port := range ports {
		all := fabric.Ports(at)
		if port >= len(all) {
			t.Fatalf("%s has no port %d", fabric.Node(at).Name, port)
		}
		at = all[port].Peer
		visited = append(visited, at)
	}
	return visited
}

// What a transport says about congestion marks is in the outer header, too, by
// either carrier, with the class of service (RFC 6040 §4.1).
func TestEncapsulate_copiesTOS(t *testing.T) {
	for _, carrier := range []encap.Carrier{encap.CarrierIPIP, encap.CarrierSRv6} {
		e := testEgress(t, fatTree, "presto", func(c *Config) { c.Carrier = carrier })
		for tos := range 256 {
			packet := dataPacket(1, 100)
			packet[1] = byte(tos)
			fixed(packet)
			out := e.wrapOne(append(make([]byte, encap.MaxOverhead), packet...), 0)
			got := byte(0)
			if carrier == encap.CarrierSRv6 {
				got = byte(binary.BigEndian.Uint16(out) >> 4)
			} else {
				got = out[1]
			}
			if got != byte(tos) {
				t.Fatalf("%v: TOS %02x becomes %02x outside", carrier, tos, got)
			}
		}
	}
}

// A pair's paths take no more memory by labels: a large fabric's racks share them.
func TestRackTable_sharesHeads(t *testing.T) {
	fabric, _ := topology.FatTree(16)
	e := testEgress(t, fabric, "drb", bySRv6)
	for host := 0; host < fabric.NumHosts(); host += 8 {
		e.paths.to(flowcell.AddressFrom(fabric.EmbeddedAddr(topology.NodeID(host))))
	}
	if racks, heads := len(e.paths.racks.racks), len(e.paths.racks.heads); racks != 127 || heads != 2 {
		t.Errorf("%d racks have %d kinds of paths", racks, heads)
	}
	if outs, groups := len(e.paths.groups.outs), len(e.paths.groups.byKey); outs != 64+8 || groups != 2 {
		t.Errorf("%d paths in %d groups", outs, groups)
	}
}
