package hedera

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
)

// costs are the numbers of flows of which the cost is measured.
var costs = []int{1000, 100_000, 1_000_000}

// perFlow reports what one of b.N calls has cost for each of its flows, and how many bytes are kept of
// each.
func perFlow(b *testing.B, flows int, kept uint64) {
	b.Helper()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(flows), "ns/flow")
	b.ReportMetric(float64(kept)/float64(flows), "B/flow")
}

// held is the memory that is in use.
func held() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// cost runs what make returns, and says how much memory that and what it needs keep.
func cost(b *testing.B, name string, make func(b *testing.B, flows int) (run, clear func())) {
	for _, flows := range costs {
		b.Run(fmt.Sprintf("%s/flows=%d", name, flows), func(b *testing.B) {
			before := held()
			run, clear := make(b, flows)
			b.ResetTimer()
			for range b.N {
				clear()
				run()
			}
			b.StopTimer()
			perFlow(b, flows, max(held(), before)-before)
			runtime.KeepAlive(run)
		})
	}
}

// BenchmarkCost is what a flow costs in a fat-tree of 8,192 hosts, by the step of the control loop and by
// the number of flows: time, and the memory that is kept.
func BenchmarkCost(b *testing.B) {
	f := fabricOf(b, largeFabric)
	pairs := func(flows int) []Pair { return randomPairs(rand.New(rand.NewPCG(1, 1)), f.Hosts(), flows) }
	cost(b, "report", func(b *testing.B, flows int) (run, clear func()) {
		var l *Loop
		list := pairs(flows)
		return func() {
				for i, p := range list {
					t := tupleOf(f, p.Src, p.Dst, i)
					t.DstPort = uint16(i >> 16)
					l.Report(f.t.Node(p.Src).Addr, t, gigabit/2000, 0)
				}
				if l.Flows() < flows*9/10 { // some have both ends at one edge switch
					b.Fatalf("%d of %d flows are known", l.Flows(), flows)
				}
			}, func() {
				l = newLoop(b, f, "exclusive", flows) // a rule that keeps nothing of flows
				l.c.Threshold = 1e-4
			}
	})
	cost(b, "demand", func(b *testing.B, flows int) (run, clear func()) {
		var e Estimator
		list := pairs(flows)
		return func() { e.Estimate(list, f.Hosts()) }, func() {}
	})
	cost(b, "first-fit", func(b *testing.B, flows int) (run, clear func()) {
		var fit *FirstFit
		var e Estimator
		list := pairs(flows)
		demand := e.Estimate(list, f.Hosts())
		return func() {
			for i, p := range list {
				fit.Place(p, demand[i])
			}
		}, func() { fit = NewFirstFit(f) }
	})
	cost(b, "annealing", func(b *testing.B, flows int) (run, clear func()) {
		a, err := NewAnnealing(f, AnnealingConfig{Iterations: 10000, C: 1000, Seed: 1})
		if err != nil {
			b.Fatal(err)
		}
		var e Estimator
		list := pairs(flows)
		demand := e.Estimate(list, f.Hosts())
		return func() { a.Schedule(list, demand) }, func() {}
	})
	// A whole round, which places all flows for the first time.
	for _, rule := range []string{"first-fit", "annealing"} {
		cost(b, "round by "+rule, func(b *testing.B, flows int) (run, clear func()) {
			var l *Loop
			list := pairs(flows)
			return func() { l.Round(0) }, func() {
				b.StopTimer()
				defer b.StartTimer()
				var err error
				l, err = NewLoop(LoopConfig{Fabric: f, Rule: rule, MaxFlows: flows, Threshold: 1e-4, Forget: time.Hour,
					Annealing: AnnealingConfig{Iterations: 10000, C: 1000, Seed: 1}})
				if err != nil {
					b.Fatal(err)
				}
				for i, p := range list {
					t := tupleOf(f, p.Src, p.Dst, i)
					t.DstPort = uint16(i >> 16)
					l.Report(f.t.Node(p.Src).Addr, t, gigabit/2000, 0)
				}
			}
		})
	}
}
