package simnet

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"weft/topology"
)

var kinds = []string{
	"fat-tree:k=4",
	"leaf-spine:leaves=4,spines=3,hosts=2",
	"vl2:d0=2,d1=4,d2=4",
	"vl2:d0=2,d1=6,d2=8,hosts=2",
	"vl2:d0=3,d1=4,d2=6,hosts=1",
}

// A packet that bounces takes the links of its path and no others, in VL2
// through the aggregation switches of its virtual spine (DRB Theorem 3).
func TestInject_bouncedPacketsTakeTheirPath(t *testing.T) {
	for _, spec := range kinds {
		topo := parse(t, spec)
		n := network(t, topo, Config{})
		before := make([]uint64, topo.NumLinks())
		now := time.Duration(0)
		for src := range topo.Hosts() {
			for dst := range topo.Hosts() {
				paths := topo.Paths(src.ID, dst.ID)
				if paths.Direct() {
					continue
				}
				for _, i := range paths.Live {
					now += time.Second
					n.Inject(src.ID, tunnel(t, src.Addr, paths.Addr(i), udp(src.Addr, dst.Addr, 1, 2, 100)), now)
					if got := drain(n); len(got) != 1 || got[0].host != dst.ID {
						t.Fatalf("%s: %s to %s by %s: %d delivered, %+v", spec, src.Name, dst.Name, paths.Name(i), len(got), n.Stats())
					}
					var took []topology.LinkID
					for l := range topo.NumLinks() {
						up, down := n.Link(topology.LinkID(l))
						for ; before[l] < up.Packets+down.Packets; before[l]++ {
							took = append(took, topology.LinkID(l))
						}
					}
					want := slices.Sorted(slices.Values(paths.Path(i).Links))
					if !slices.Equal(took, want) {
						t.Fatalf("%s: %s to %s by %s: links %v, want %v", spec, src.Name, dst.Name, paths.Name(i), took, want)
					}
				}
			}
		}
	}
}

// A boomerang comes home from every switch above its sender, and not from one
// that has failed.
func TestInject_boomerangsComeHome(t *testing.T) {
	for _, spec := range kinds {
		topo := parse(t, spec)
		n := network(t, topo, Config{})
		now := time.Duration(0)
		for src := range topo.Hosts() {
			above := make(map[netip.Addr]topology.NodeID)
			for dst := range topo.Hosts() {
				paths := topo.Paths(src.ID, dst.ID)
				for _, i := range paths.Live {
					above[paths.Addr(i)] = paths.Bounce(i)
				}
			}
			for addr, via := range above {
				for _, failed := range []bool{false, true} {
					if failed {
						n.Fail(via)
					} else {
						n.Heal(via)
					}
					now += time.Second
					n.Inject(src.ID, tunnel(t, src.Addr, addr, udp(src.Addr, src.Addr, 1, 2, 52)), now)
					got := drain(n)
					if home := len(got) == 1 && got[0].host == src.ID; home == failed {
						t.Fatalf("%s: %s by %v, failed %v: %+v", spec, src.Name, addr, failed, n.Stats())
					}
				}
				n.Heal(via)
			}
		}
	}
}

// Links are as fast as the topology says.
func TestNew_ratesOfTheTopology(t *testing.T) {
	topo := parse(t, "fat-tree:k=4,host-rate=100,core-rate=40,c1.1-a2.2=10")
	n := network(t, topo, Config{RateBits: 1e9})
	seen := make(map[int64]bool)
	for l := range topo.Links() {
		want := int64(topo.Rate(l.ID) * 1e6)
		if want == 0 {
			want = 1e9
		}
		seen[want] = true
		for i := range 2 {
			if got := n.ports[2*int(l.ID)+i].rate; got != want {
				t.Errorf("%s: %d bit/s, want %d", topo.LinkName(l.ID), got, want)
			}
		}
	}
	if len(seen) < 2 {
		t.Errorf("all rates are alike: %v", seen)
	}
	// An impairment ends with the rate that the link was built with.
	var slow topology.LinkID
	for l := range topo.Links() {
		if topo.Rate(l.ID) > 0 {
			slow = l.ID
		}
	}
	for _, i := range []Impairment{{RateBits: 1000}, {}} {
		if err := n.Impair(slow, Upward, i); err != nil {
			t.Fatal(err)
		}
	}
	if got := n.ports[2*int(slow)].rate; got != int64(topo.Rate(slow)*1e6) {
		t.Errorf("%d bit/s after an impairment", got)
	}
}

// A node that has failed takes what is in it and on the way to it; its
// neighbours go on sending.
func TestFail_untilHeal(t *testing.T) {
	topo := fatTree(t, 4)
	src, dst, core := host(t, topo, "h0.0.2"), host(t, topo, "h3.1.3"), host(t, topo, "3.2")
	n := network(t, topo, Config{Delay: time.Millisecond})
	send := func(at time.Duration) {
		n.Inject(src.ID, tunnel(t, src.Addr, core.Addr, udp(src.Addr, dst.Addr, 1, 2, 100)), at)
	}
	delivered := 0
	advance := func(to time.Duration) {
		n.Advance(to, func(topology.NodeID, []byte) { delivered++ })
	}
	for i, step := range []struct {
		at        time.Duration
		do        func()
		delivered int
		lost      uint64
	}{
		{0, func() { send(0) }, 0, 0},
		{2 * time.Millisecond, func() { n.Fail(core.ID) }, 0, 0},                                  // on its way up
		{10 * time.Millisecond, func() { send(10 * time.Millisecond) }, 0, 1},                     // lost at the core
		{12 * time.Millisecond, func() { n.Heal(core.ID) }, 0, 1},                                 // soon enough
		{20 * time.Millisecond, func() { send(20 * time.Millisecond) }, 1, 1},                     //
		{23200 * time.Microsecond, func() { n.Fail(core.ID) }, 1, 1},                              // has left the core
		{30 * time.Millisecond, func() { n.Fail(src.ID); send(30 * time.Millisecond) }, 1, 3},     // lost with the core; a failed host sends nothing
		{40 * time.Millisecond, func() { n.Heal(src.ID); n.Heal(core.ID); n.Fail(dst.ID) }, 1, 3}, //
		{41 * time.Millisecond, func() { send(41 * time.Millisecond) }, 1, 3},                     //
		{60 * time.Millisecond, func() { n.Heal(dst.ID); send(60 * time.Millisecond) }, 1, 4},     //
		{80 * time.Millisecond, func() {}, 2, 4},
	} {
		advance(step.at)
		step.do()
		if s := n.Stats(); delivered != step.delivered || s.Dropped[NodeDown] != step.lost || !s.conserved() {
			t.Fatalf("step %d: %d delivered, %+v", i, delivered, s)
		}
	}
}

// A switch whose routes are repaired sends round the failure what is not
// encapsulated; one that has not heard of it does not.
func TestSetRoutes_oneNodeAfterTheOther(t *testing.T) {
	topo := fatTree(t, 4)
	src, dst := host(t, topo, "h0.0.2"), host(t, topo, "h0.1.2")
	edge, agg := host(t, topo, "e0.0"), host(t, topo, "a0.2")
	n := network(t, topo, Config{})
	cable, err := topo.LinkByName("a0.2-e0.1")
	if err != nil {
		t.Fatal(err)
	}
	l := cable.ID
	for _, d := range []Direction{Upward, Downward} {
		if err := n.Impair(l, d, Impairment{Down: true}); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Duration(0)
	lost := func() (lost int) {
		before := n.Stats().Delivered
		for port := range uint16(64) {
			n.Inject(src.ID, udp(src.Addr, dst.Addr, port, 2, 100), now)
			now += time.Millisecond
			drain(n)
		}
		return 64 - int(n.Stats().Delivered-before)
	}
	if got := lost(); got < 16 || got > 48 {
		t.Errorf("%d of 64 lost, want about half", got)
	}
	without := topo.Without(l)
	if err := n.SetRoutes(agg.ID, without); err != nil {
		t.Fatal(err)
	}
	if got := lost(); got < 16 || got > 48 {
		t.Errorf("the aggregation switch alone knows: %d of 64 lost, want about half", got)
	}
	if err := n.SetRoutes(edge.ID, without); err != nil {
		t.Fatal(err)
	}
	if got := lost(); got != 0 {
		t.Errorf("the edge switch knows: %d of 64 lost", got)
	}
	if err := n.SetRoutes(edge.ID, fatTree(t, 6)); err == nil {
		t.Error("routes of another fabric were taken")
	}
	if err := n.SetRoutes(999, topo); err == nil {
		t.Error("a node of no fabric was given routes")
	}
}

// A link that loses all data still passes what is short.
func TestImpair_lossAbove(t *testing.T) {
	topo := fatTree(t, 4)
	src, dst := host(t, topo, "h0.0.2"), host(t, topo, "h0.0.3")
	n := network(t, topo, Config{})
	if err := n.Impair(topo.Ports(src.ID)[0].Link, Upward, Impairment{Loss: 1, LossAbove: 100}); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{40, 100, 101, 1500} {
		n.Inject(src.ID, udp(src.Addr, dst.Addr, 1, 2, size), 0)
	}
	got := drain(n)
	if len(got) != 2 || n.Stats().Dropped[Lost] != 2 {
		t.Errorf("%d delivered, %+v", len(got), n.Stats())
	}
	if err := n.Impair(0, Upward, Impairment{LossAbove: -1}); err == nil {
		t.Error("a negative length was taken")
	}
}
