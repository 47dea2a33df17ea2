package dataplane

import (
	"testing"

	"weft/flowcell"
	"weft/topology"
)

// A Host of the largest fabric that talks to 10,000 others, when one link
// flaps: what SetTopology takes, and the first look at a pair of each kind.
func BenchmarkSetTopology(b *testing.B) {
	fabric, err := topology.FatTree(48)
	if err != nil {
		b.Fatal(err)
	}
	const pairs = 10_000
	e := testEgress(b, fabric, "drb")
	dst := func(i int) flowcell.Address {
		return flowcell.AddressFrom(fabric.EmbeddedAddr(topology.NodeID(576 + i%pairs*2)))
	}
	for i := range pairs {
		e.paths.to(dst(i))
	}
	// A core's link to one pod, and one of the host's own: the former is on the paths
	// of 288 of the pairs, the latter on those of all.
	far := fabric.Without(between(b, fabric, "a5.24", "c1.1"))
	own := fabric.Without(between(b, fabric, "e0.0", "a0.24"))
	few, many := make([]int, 0, pairs), make([]int, 0, pairs)
	for i := range pairs {
		if host, _ := fabric.ByAddr(dst(i).IP()); fabric.Node(host).Addr.As4()[1] == 5 {
			few = append(few, i)
		} else {
			many = append(many, i)
		}
	}
	flap := func(n int) {
		e.SetTopology([]*topology.Topology{far, fabric}[n%2])
	}
	b.Run("SetTopology", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			flap(i)
		}
	})
	first := func(name string, whom []int, next func(int)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			at := 0
			for n := 0; b.Loop(); n++ {
				if n%len(whom) == 0 {
					b.StopTimer()
					next(at)
					at++
					b.StartTimer()
				}
				e.paths.to(dst(whom[n%len(whom)]))
			}
		})
	}
	first("affected", few, flap)
	first("unaffected", many, flap)
	first("every pair affected", many, func(n int) { e.SetTopology([]*topology.Topology{own, fabric}[n%2]) })
	b.Run("no change", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			e.paths.to(dst(i % pairs))
		}
	})
}
