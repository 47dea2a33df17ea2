package hostprog

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/cilium/ebpf"

	"weft/encap"
	"weft/internal/slowtest"
	"weft/topology"
)

// What is avoided to one host is avoided to both its addresses, and to nobody else of
// its rack, though it be the first of it; when that ends, nothing is left of it.
func TestSpray_avoidsPathsToOneHostAlone(t *testing.T) {
	slowtest.System(t)
	l := sprayLab(t)
	for _, c := range []encap.Carrier{encap.CarrierIPIP, encap.CarrierSRv6} {
		s := newSprayedBy(t, l, "presto", c)
		whole := l.Config.Topology
		racks := s.numbers(t)
		for _, host := range []netip.Addr{s.dst.Addr, whole.Node(s.dst.ID - 1).Addr} {
			avoided := []topology.Avoided{{Src: s.src.ID, Dst: host, Path: 1}, {Src: s.src.ID, Dst: host, Path: 2}, {Src: s.dst.ID, Dst: s.src.Addr, Path: 3}}
			for _, next := range []*topology.Topology{whole.Avoiding(avoided...), whole} {
				if err := s.spray.SetTopology(next); err != nil {
					t.Fatal(err)
				}
				for rack, g := range s.numbers(t) {
					if g != racks[rack] {
						t.Errorf("%v: rack of %s went from group %d to %d", c, whole.Node(rack).Name, racks[rack], g)
					}
				}
				for _, p := range addressesOf(whole, host) {
					var value rackValue
					err := s.spray.ways.racks.Lookup(lpmKey{uint32(p.Bits()), p.Addr().As4()}, &value)
					if err != nil {
						t.Fatal(err)
					}
					rack := s.spray.ways.by[rackOf(p.Addr())].number
					if next == whole {
						if value.Group != rack {
							t.Errorf("%v: %v still has group %d of its own", c, p, value.Group)
						}
						continue
					}
					var g groupValue
					if err := s.spray.ways.groups.Lookup(value.Group, &g); err != nil {
						t.Fatal(err)
					}
					visits := slices.Sorted(slices.Values(s.spray.ways.by[p].visits))
					if value.Group == rack || g.N != 2 || !slices.Equal(visits, []int{0, 3}) {
						t.Errorf("%v: %v has group %d of %d paths, %v", c, p, value.Group, g.N, visits)
					}
				}
			}
			if n := len(s.spray.ways.by); n != len(racks) {
				t.Errorf("%v: %d ways are left, of %d racks", c, n, len(racks))
			}
		}
		key := lpmKey{32, s.dst.Addr.As4()}
		if err := s.spray.ways.racks.Delete(key); !errors.Is(err, ebpf.ErrKeyNotExist) {
			t.Errorf("%v: the way to %v was still there: %v", c, s.dst.Addr, err)
		}
	}
}
