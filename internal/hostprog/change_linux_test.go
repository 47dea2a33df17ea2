package hostprog

import (
	"net/netip"
	"slices"
	"testing"

	"weft/encap"
	"weft/internal/kernel/kerneltest"
	"weft/lab"
	"weft/topology"
)

// numbers reads the group of each rack.
func (s *sprayed) numbers(t *testing.T) map[topology.NodeID]uint32 {
	t.Helper()
	all := make(map[topology.NodeID]uint32)
	for _, r := range s.spray.ways.all {
		key := lpmKey{uint32(r.prefix.Bits()), r.prefix.Addr().As4()}
		var value rackValue
		if err := s.spray.ways.racks.Lookup(key, &value); err != nil {
			t.Fatal(err)
		}
		all[r.edge] = value.Group
	}
	return all
}

// A link that goes down or up ends the flowcells to the racks whose paths it is
// on, and to no others: theirs go on where they are.
func TestSpray_changesOnlyWhatDiffers(t *testing.T) {
	l := sprayLab(t)
	for _, c := range []encap.Carrier{encap.CarrierIPIP, encap.CarrierSRv6} {
		changesOnlyWhatDiffers(t, newSprayedBy(t, l, "presto", c), c)
	}
}

func changesOnlyWhatDiffers(t *testing.T, s *sprayed, c encap.Carrier) {
	whole := s.lab.Config.Topology
	now := whole
	for _, step := range []struct{ link, what string }{
		{"a3.2-c1.1", "a core's link into another pod"},
		{"e2.1-a2.3", "a far rack's uplink"},
		{"a0.3-c2.1", "the own pod's link to a core"},
	} {
		link, err := whole.LinkByName(step.link)
		if err != nil {
			t.Fatal(err)
		}
		for _, next := range []*topology.Topology{now.Without(link.ID), now} {
			before := s.numbers(t)
			if err := s.spray.SetTopology(next); err != nil {
				t.Fatal(err)
			}
			changed := 0
			for host, g := range s.numbers(t) {
				other := !slices.Equal(now.Paths(s.src.ID, host).Live, now.Without(link.ID).Paths(s.src.ID, host).Live)
				if (g != before[host]) != other {
					t.Errorf("%s, %v: rack of %s went from group %d to %d; other paths: %v",
						step.what, next.Down(), whole.Node(host).Name, before[host], g, other)
				}
				if other {
					changed++
				}
			}
			if changed == 0 || changed == len(before) && step.link[1] != '0' {
				t.Errorf("%s: %d of %d racks are affected", step.what, changed, len(before))
			}
			s.oracle.table = mustTableBy(t, next, s.src.ID, mustPolicy(t, "presto"), c)
			for id := range uint16(8) {
				s.check(t, step.what, s.numberedSegment(id<<6))
			}
		}
		now = now.Without(link.ID)
		if err := s.spray.SetTopology(now); err != nil {
			t.Fatal(err)
		}
	}
	other := kerneltest.Topology(t, "fat-tree:k=6")
	if err := s.spray.SetTopology(other); err == nil {
		t.Error("another fabric was accepted")
	}
}

// What a failure costs a host of a large fabric, by how far away it is.
func BenchmarkSpraySetTopology(b *testing.B) {
	lab, err := lab.Hold(b.Context(), lab.Config{Name: kerneltest.LabName("b"), Topology: kerneltest.Topology(b, "fat-tree:k=2"), Unlimited: true})
	if err != nil {
		b.Skip(err)
	}
	defer lab.Close()
	whole := kerneltest.Topology(b, "fat-tree:k=48")
	for _, c := range []struct{ name, link string }{
		{"far rack's uplink", "e40.1-a40.30"},
		{"link into another pod", "a40.30-c7.3"},
		{"own pod's link to a core", "a0.30-c7.3"},
		{"own rack's uplink", "e0.0-a0.30"},
	} {
		b.Run(c.name, func(b *testing.B) {
			link, err := whole.LinkByName(c.link)
			if err != nil {
				b.Fatal(err)
			}
			down := whole.Without(link.ID)
			err = lab.Do(0, func() error {
				o, err := AttachSpray(SprayConfig{Uplink: "p0", Addresses: []netip.Addr{whole.Node(0).Addr}, Topology: whole, Policy: mustPolicy(b, "drb")})
				if err != nil {
					return err
				}
				defer o.Close()
				for b.Loop() {
					if err := o.SetTopology(down); err != nil {
						return err
					}
					down, whole = whole, down
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}
