package switchd

import (
	"net/netip"
	"strconv"
	"testing"

	"weft/topology"
)

// A source is told of what leaves by the ports that its packets take through the fabric, and
// of nothing that leaves by others.
func TestSends_isTheFabricsPaths(t *testing.T) {
	for _, spec := range []string{"fat-tree:k=4", "leaf-spine:leaves=3,spines=2,hosts=2", "vl2:d0=2,d1=4,d2=4"} {
		t.Run(spec, func(t *testing.T) {
			top, err := topology.Parse(spec)
			if err != nil {
				t.Fatal(err)
			}
			type leaving struct {
				source topology.NodeID
				link   topology.LinkID
				from   topology.NodeID
			}
			can := make(map[leaving]bool)
			for src := range topology.NodeID(top.NumHosts()) {
				for dst := range topology.NodeID(top.NumHosts()) {
					if src == dst {
						continue
					}
					set := top.Paths(src, dst)
					if set.Direct() {
						can[leaving{src, top.Ports(dst)[0].Link, top.EdgeOf(src)}] = true
					}
					for _, n := range set.Live {
						path := set.Path(n)
						for i, link := range path.Links {
							can[leaving{src, link, path.Hops[i]}] = true
						}
					}
				}
			}
			for n := range top.Nodes() {
				if n.Layer == topology.LayerHost {
					continue
				}
				var names []string
				for _, p := range top.Ports(n.ID) {
					names = append(names, strconv.Itoa(p.Index))
				}
				tells := sends(top, n.ID, names)
				for src := range topology.NodeID(top.NumHosts()) {
					for i, p := range top.Ports(n.ID) {
						if got, want := tells(top.Node(src).Addr, names[i]), can[leaving{src, p.Link, n.ID}]; got != want {
							t.Errorf("at %s: a packet of %s leaves to %s: %v, want %v", n.Name, top.Node(src).Name, top.Node(p.Peer).Name, got, want)
						}
					}
				}
				host := top.Node(0).Addr
				if tells(n.Addr, names[0]) || tells(netip.MustParseAddr("192.0.2.1"), names[0]) || tells(host, "") || tells(host, "eth7") {
					t.Errorf("%s tells a switch, a stranger, or of a port that it has not", n.Name)
				}
			}
		})
	}
}
