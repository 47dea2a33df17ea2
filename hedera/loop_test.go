package hedera

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"weft/flowcell"
	"weft/topology"
	"weft/topology/graph"
)

const gigabit = 1_000_000_000

func tupleOf(f *Clos, src, dst topology.NodeID, port int) flowcell.FiveTuple {
	return flowcell.FiveTuple{Proto: flowcell.ProtoTCP, SrcPort: uint16(port), DstPort: 80,
		Src: flowcell.AddressFrom(f.t.Node(src).Addr), Dst: flowcell.AddressFrom(f.t.Node(dst).Addr)}
}

func newLoop(t testing.TB, f Fabric, rule string, most int) *Loop {
	t.Helper()
	l, err := NewLoop(LoopConfig{Fabric: f, Rule: rule, MaxFlows: most, Forget: 3 * time.Second,
		Annealing: AnnealingConfig{Iterations: 1000, C: .5, Seed: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// overlaps returns how many elephants the busiest link between switches has.
func overlaps(f *Clos, placed []Assignment) (most int) {
	load := make(map[int32]int)
	for _, a := range placed {
		src, _ := f.Host(a.Tuple.Src.IP())
		dst, _ := f.Host(a.Tuple.Dst.IP())
		for _, u := range f.AppendRoute(nil, src, dst, a.Path) {
			load[u.Port]++
			most = max(most, load[u.Port])
		}
	}
	return most
}

// All rules place a stride without overlap, and leave it so. A rule that places nothing, or
// all on path 0, fails.
func TestLoop_placesAStride(t *testing.T) {
	for _, rule := range Rules {
		for _, by := range []int{4, 8} {
			f := fabricOf(t, kinds[0])
			l := newLoop(t, f, rule, 0)
			for round := range time.Duration(3) {
				for h := range topology.NodeID(16) {
					if err := l.Report(f.t.Node(h).Addr, tupleOf(f, h, (h+topology.NodeID(by))%16, 1), gigabit/2, round*time.Second); err != nil {
						t.Fatal(err)
					}
				}
				r := l.Round(round * time.Second)
				if len(r.Placed) < 14 || rule != "exclusive" && len(r.Placed) != 16 {
					// First fit by whole links may leave a few of a stride without a free path.
					t.Errorf("%s, stride %d: %d placed", rule, by, len(r.Placed))
				}
				if n := overlaps(f, r.Placed); n > 1 {
					t.Errorf("%s, stride %d: %d flows on a link", rule, by, n)
				}
				if round > 0 && len(r.Changed) > 0 {
					t.Errorf("%s, stride %d: %d placements flap", rule, by, len(r.Changed))
				}
				for _, a := range r.Placed {
					if want := f.t.Paths(0, 15).Addr(a.Path); by == 8 && a.Via != want {
						t.Errorf("%s: path %d via %v, want %v", rule, a.Path, a.Via, want)
					}
				}
			}
			// Nobody reports any more.
			if r := l.Round(9 * time.Second); len(r.Placed) > 0 || len(r.Ended) < 14 || l.Flows() != 0 {
				t.Errorf("%s: after all have ended %d placed, %d ended, %d known", rule, len(r.Placed), len(r.Ended), l.Flows())
			}
		}
	}
}

// When a link fails the placements over it end at once, others stay, and no path is ever
// placed that is dead.
func TestLoop_deadPaths(t *testing.T) {
	for _, rule := range Rules {
		f := fabricOf(t, kinds[0])
		l := newLoop(t, f, rule, 0)
		report := func() {
			for h := range topology.NodeID(8) {
				l.Report(f.t.Node(h).Addr, tupleOf(f, h, h+8, 1), gigabit, 0)
			}
		}
		report()
		before := l.Round(0)
		paths := make(map[flowcell.FiveTuple]int)
		for _, a := range before.Placed {
			paths[a.Tuple] = a.Path
		}
		failed := f.t.Paths(0, 8).Path(paths[tupleOf(f, 0, 8, 1)]).Links[1] // the edge switch's link up
		now, err := NewClos(f.t.Without(failed))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.SetFabric(now); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			report()
			r := l.Round(0)
			if len(r.Placed) == 0 {
				t.Errorf("%s: nothing is placed", rule)
			}
			for _, a := range r.Placed {
				src, _ := now.Host(a.Tuple.Src.IP())
				dst, _ := now.Host(a.Tuple.Dst.IP())
				if !now.Live(src, dst, a.Path) {
					t.Errorf("%s: %v is placed on dead path %d", rule, a.Tuple, a.Path)
				}
			}
		}
		other, err := NewClos(f.t)
		if err != nil || l.SetFabric(other) != nil {
			t.Errorf("%s: the link comes back: %v", rule, err)
		}
		if err := l.SetFabric(fabricOf(t, kinds[1])); err == nil {
			t.Errorf("%s: another fabric is taken", rule)
		}
	}
}

// A scheduler that takes over keeps what the one before has placed.
func TestLoop_adoptsWithoutFlapping(t *testing.T) {
	for _, rule := range Rules {
		f := fabricOf(t, kinds[0])
		was, now := newLoop(t, f, rule, 0), newLoop(t, f, rule, 0)
		for h := range topology.NodeID(16) {
			was.Report(f.t.Node(h).Addr, tupleOf(f, h, (h+4)%16, 1), gigabit, 0)
		}
		placed := was.Round(0).Placed
		for _, a := range placed {
			if err := now.Adopt(a, 0); err != nil {
				t.Fatal(err)
			}
		}
		for _, a := range placed {
			now.Report(a.Node, a.Tuple, gigabit, time.Second)
		}
		r := now.Round(time.Second)
		if len(r.Changed) > 0 || len(r.Placed) != len(placed) {
			t.Errorf("%s: %d of %d changed, %d placed", rule, len(r.Changed), len(placed), len(r.Placed))
		}
		if err := now.Adopt(Assignment{Node: placed[0].Node, Tuple: tupleOf(f, 0, 8, 9), Path: 99}, 0); err != RefusedDead {
			t.Errorf("%s: a path that is none: %v", rule, err)
		}
		strange := Assignment{Node: placed[0].Node, Tuple: tupleOf(f, 0, 8, 9), Path: 1, Via: f.t.Paths(0, 8).Addr(2)}
		if err := now.Adopt(strange, 0); err != RefusedDead {
			t.Errorf("%s: a path by another switch: %v", rule, err)
		}
		strange.Via, strange.Node = f.t.Paths(0, 8).Addr(1), f.t.Node(9).Addr
		if err := now.Adopt(strange, 0); err != RefusedNode {
			t.Errorf("%s: another host's placement: %v", rule, err)
		}
	}
}

// The same reports give the same placements.
func TestLoop_isDeterministic(t *testing.T) {
	for name, f := range fabrics(t) {
		for _, rule := range Rules {
			run := func() (s string) {
				l := newLoop(t, f, rule, 50)
				rng := rand.New(rand.NewPCG(9, 9))
				for range 4 {
					for _, p := range randomPairs(rng, f.Hosts(), 60) {
						tuple, node := addressesOf(f, p)
						l.Report(node, tuple, uint64(f.HostLink(p.Src)*1e6*(.1+.9*rng.Float64())), 0)
					}
					r := l.Round(0)
					s += fmt.Sprint(r.Placed, r.Changed, r.Ended)
				}
				return s
			}
			if a, b := run(), run(); a != b || len(a) < 100 {
				t.Errorf("%s, %s:\n%s\n%s", name, rule, a, b)
			}
		}
	}
}

func addressesOf(f Fabric, p Pair) (t flowcell.FiveTuple, node netip.Addr) {
	address := func(h topology.NodeID) netip.Addr {
		if c, ok := f.(*Clos); ok {
			return c.t.Node(h).Addr
		}
		return f.(*Data).g.Node(graph.NodeID(h)).Addresses[0]
	}
	return flowcell.FiveTuple{Proto: flowcell.ProtoTCP, SrcPort: uint16(p.Src),
		Src: flowcell.AddressFrom(address(p.Src)), Dst: flowcell.AddressFrom(address(p.Dst))}, address(p.Src)
}
