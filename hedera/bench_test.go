package hedera

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"weft/topology"
)

const largeFabric = "fat-tree:k=32,host-rate=1000,fabric-rate=1000,core-rate=1000"

// BenchmarkReport is the cost of a reported flow: known, new to a table that is full of
// larger ones, and new in the place of a smaller one.
func BenchmarkReport(b *testing.B) {
	f := fabricOf(b, largeFabric)
	for _, known := range []bool{true, false} {
		b.Run(fmt.Sprintf("known=%v", known), func(b *testing.B) {
			l := newLoop(b, f, "first-fit", DefaultMaxFlows)
			l.c.Threshold = 0.01 // a host has eight
			rng := rand.New(rand.NewPCG(1, 1))
			report := func(i int, rate uint64) {
				src := topology.NodeID(i % f.Hosts())
				t := tupleOf(f, src, (src+4096)%topology.NodeID(f.Hosts()), i)
				t.DstPort = uint16(i >> 16)
				l.Report(f.t.Node(src).Addr, t, rate, 0)
			}
			for i := range DefaultMaxFlows {
				report(i, gigabit/20)
			}
			for i := range b.N {
				if known {
					report(i%DefaultMaxFlows, gigabit/20)
				} else {
					report(DefaultMaxFlows+i, gigabit/50+rng.Uint64N(gigabit/10))
				}
			}
		})
	}
}

// BenchmarkRound is a round of the control loop (thesis Table 4.6 and 4.7: 8,192 hosts).
func BenchmarkRound(b *testing.B) {
	f := fabricOf(b, largeFabric)
	for _, rule := range Rules {
		for _, flows := range []int{8192, 25000, 50000} {
			b.Run(fmt.Sprintf("%s/flows=%d", rule, flows), func(b *testing.B) {
				l, err := NewLoop(LoopConfig{Fabric: f, Rule: rule, Threshold: 0.01, Forget: time.Hour, Annealing: AnnealingConfig{Iterations: 10000, C: 1000, Seed: 1}})
				if err != nil {
					b.Fatal(err)
				}
				rng := rand.New(rand.NewPCG(1, 1))
				for i, p := range randomPairs(rng, f.Hosts(), flows) {
					l.Report(f.t.Node(p.Src).Addr, tupleOf(f, p.Src, p.Dst, i), gigabit/20, 0)
				}
				for b.Loop() {
					l.Round(0)
				}
			})
		}
	}
}
