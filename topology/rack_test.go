package topology

import (
	"net/netip"
	"testing"
)

// EdgeOf, FirstHost, RackOf and RackAt say what the wiring and the addresses of the
// nodes say.
func TestRacks_areTheWirings(t *testing.T) {
	for _, whole := range append(fabrics(t), manyFabrics(t)...) {
		top := whole.Without(0, 1) // hosts' links, which do not matter
		of := make(map[netip.Prefix]NodeID)
		for edge := range top.Nodes() {
			if edge.Layer != LayerEdge {
				continue
			}
			rack, err := edge.Addr.Prefix(24)
			if err != nil || of[rack] != 0 {
				t.Fatalf("%v: %s: rack %v, which is also that of node %d; %v", top, edge.Name, rack, of[rack], err)
			}
			of[rack] = edge.ID
			if got := top.RackOf(edge.ID); got != rack {
				t.Errorf("%v: RackOf(%s) = %v, want %v", top, edge.Name, got, rack)
			}
			ports := top.Ports(edge.ID)
			if got := top.FirstHost(edge.ID); got != ports[0].Peer {
				t.Errorf("%v: FirstHost(%s) = %d, want %d", top, edge.Name, got, ports[0].Peer)
			}
			for _, p := range ports {
				if p.Up {
					continue
				}
				if got := top.EdgeOf(p.Peer); got != edge.ID {
					t.Errorf("%v: EdgeOf(%d) = %d, want %d", top, p.Peer, got, edge.ID)
				}
				if got := top.RackOf(p.Peer); got != rack || !rack.Contains(top.EmbeddedAddr(p.Peer)) {
					t.Errorf("%v: RackOf(%d) = %v, want %v", top, p.Peer, got, rack)
				}
			}
		}
		for n := range top.Nodes() {
			for _, addr := range append(top.BouncingAddrs(n.ID), n.Addr) {
				prefix, _ := addr.Prefix(24)
				want, inRack := of[prefix]
				if inRack != (n.Layer <= LayerEdge) {
					t.Fatalf("%v: %s has %v, in a rack: %t", top, n.Name, addr, inRack)
				}
				if got, ok := top.RackAt(addr); ok != inRack || ok && got != want {
					t.Errorf("%v: RackAt(%v) = %d, %t; want %d, %t", top, addr, got, ok, want, inRack)
				}
			}
		}
	}
}

// All addresses of a rack's prefix are in the rack, those too that nobody has; those of
// other nets are in none, whatever they look like.
func TestRackAt_everyAddress(t *testing.T) {
	for _, top := range fabrics(t) {
		edge := top.EdgeOf(NodeID(top.NumHosts() - 1))
		addr := top.RackOf(edge).Addr()
		for range 256 {
			if got, ok := top.RackAt(addr); !ok || got != edge {
				t.Errorf("%v: RackAt(%v) = %d, %t; want %d", top, addr, got, ok, edge)
			}
			addr = addr.Next()
		}
		for _, s := range []string{"11.0.0.2", "10.250.250.2", "192.0.2.1", "::a00:2", "::ffff:10.0.0.2", "fd00::2"} {
			if got, ok := top.RackAt(netip.MustParseAddr(s)); ok {
				t.Errorf("%v: RackAt(%s) = %d", top, s, got)
			}
		}
		if _, ok := top.RackAt(netip.Addr{}); ok {
			t.Errorf("%v: no address is in a rack", top)
		}
	}
}
