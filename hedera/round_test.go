package hedera

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weft/topology"
)

// While a round is computed flows come, grow, end as the table is full, and links fail. The
// rule forgets nothing that it has reserved: when all flows have ended all is free again. No
// flow is placed that has ended, and none on a dead path.
func TestWork_reportsWhileItIsComputed(t *testing.T) {
	whole := fabricOf(t, kinds[0])
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 7))
		for _, rule := range []string{"first-fit", "exclusive"} {
			l := newLoop(t, whole, rule, 12)
			now, fabric := time.Duration(0), whole
			report := func(n int) {
				for _, p := range randomPairs(rng, 16, n) {
					l.Report(whole.t.Node(p.Src).Addr, tupleOf(whole, p.Src, p.Dst, rng.IntN(3)), gigabit/8+rng.Uint64N(gigabit/2), now)
				}
			}
			for range 20 {
				now += time.Second
				report(10)
				w := l.Begin(now)
				changed := rng.IntN(5) == 0
				done := make(chan struct{})
				go func() { w.Compute(); close(done) }() // the race detector sees what is shared
				report(10)
				if changed {
					var err error
					if fabric, err = NewClos(whole.t.Without(topology.LinkID(16 + rng.IntN(32)))); err != nil {
						t.Fatal(err)
					}
					if err := l.SetFabric(fabric); err != nil {
						t.Fatal(err)
					}
					report(3)
				}
				<-done
				for _, a := range l.Finish(w).Placed {
					src, _ := fabric.Host(a.Tuple.Src.IP())
					dst, _ := fabric.Host(a.Tuple.Dst.IP())
					if l.table.get(a.Tuple) == nil || !fabric.Live(src, dst, a.Path) {
						t.Fatalf("seed %d, %s: %v is placed on path %d: ended or dead", seed, rule, a.Tuple, a.Path)
					}
				}
			}
			now += time.Hour
			l.Round(now)
			if l.Flows() != 0 {
				t.Fatalf("%d flows are known", l.Flows())
			}
			switch r := l.rule.(type) {
			case *GlobalFirstFit:
				if !slices.Equal(r.fit.left, units(fabric)) {
					t.Fatalf("seed %d: what ended flows had is still reserved", seed)
				}
			case *Central:
				for port, taken := range r.links.taken {
					if taken != (fabric.capacity[port] == 0) {
						t.Fatalf("seed %d: port %d is still taken", seed, port)
					}
				}
			}
		}
	}
}
