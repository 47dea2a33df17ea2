package simnet

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"weft/drb"
	"weft/topology"
)

// Over the paths that are left, every link has its share: with whatever cores
// dead, after each packet of a pair every link that the pair's paths take has
// carried its share of the packets within less than one, where a share is the
// part of the live paths that take the link. So the load that a dead core had
// falls to the others alike, and capacity falls by its share (thesis §3.1.8,
// DRB Fig. 12).
func TestInterleave_linksShareWithinOnePacket(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, spec := range []string{"fat-tree:k=4", "fat-tree:k=6", "vl2:d0=2,d1=6,d2=4,hosts=1"} {
		whole := parse(t, spec)
		src, dst := topology.NodeID(0), topology.NodeID(whole.NumHosts()-1)
		all := len(whole.Paths(src, dst).Live)
		for dead := range all {
			// The first, which share an aggregation switch, and some at random.
			for _, cores := range [][]int{first(dead), rng.Perm(all)[:dead]} {
				t.Run(fmt.Sprintf("%s, dead %v", spec, cores), func(t *testing.T) {
					topo, paths := whole, whole.Paths(src, dst)
					for _, i := range cores {
						// In VL2, the path's own link rather than the whole spine.
						topo = topo.Without(paths.Path(i).Links[2])
					}
					sharesWithinOne(t, topo, src, dst, all-dead)
				})
			}
		}
	}
}

func first(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

// sharesWithinOne sends packets of a pair by the live paths in DRB's order.
func sharesWithinOne(t *testing.T, topo *topology.Topology, src, dst topology.NodeID, live int) {
	paths := topo.Paths(src, dst)
	if len(paths.Live) != live {
		t.Fatalf("%d paths, want %d", len(paths.Live), live)
	}
	takes := make(map[topology.LinkID]int) // live paths by link
	for _, i := range paths.Live {
		for _, l := range paths.Path(i).Links {
			takes[l]++
		}
	}
	order := drb.DigitReversal.Order(paths.Bases, paths.Live)
	n := network(t, topo, Config{})
	a, b := topo.Node(src).Addr, topo.Node(dst).Addr
	for sent := 1; sent <= 3*live; sent++ {
		path := order[(sent-1)%live]
		n.Inject(src, tunnel(t, a, paths.Addr(path), udp(a, b, 1, 2, 100)), time.Duration(sent)*time.Second)
		drain(n)
		for l := range topo.NumLinks() {
			id := topology.LinkID(l)
			up, down := n.Link(id)
			carried, share := up.Packets+down.Packets, float64(sent*takes[id])/float64(live)
			if off := math.Abs(float64(carried) - share); off >= 1 {
				t.Fatalf("after %d packets %s has carried %d, its share is %.2f", sent, topo.LinkName(id), carried, share)
			}
		}
	}
	if s := n.Stats(); s.Delivered != uint64(3*live) {
		t.Errorf("%+v", s)
	}
}
