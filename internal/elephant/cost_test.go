package elephant

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"
)

// BenchmarkCost is what a flow costs at a node, by how many there are: of a reading of the program's
// counts, of which MaxCounted is all that a program has, and of a pin that is renewed.
func BenchmarkCost(b *testing.B) {
	for _, flows := range []int{1000, MaxCounted, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("reading/flows=%d", flows), func(b *testing.B) {
			counts := make([]Count, flows)
			for n := range counts {
				counts[n].Key = numbered(n).Key()
			}
			before := held()
			d := mustDetector(b, Config{Link: func(netip.Addr) float64 { return 1e9 }})
			for i := 0; b.Loop(); i++ {
				for n := range counts {
					counts[n].Bytes += uint64(n)
				}
				d.Read(time.Duration(1+i)*time.Second, counts)
			}
			perFlow(b, flows, before)
			runtime.KeepAlive(d)
			runtime.KeepAlive(counts)
		})
	}
	for _, flows := range []int{1000, MaxPins} {
		b.Run(fmt.Sprintf("pins/flows=%d", flows), func(b *testing.B) {
			via := netip.MustParseAddr("10.4.1.1")
			before := held()
			var p Pins
			for i := 0; b.Loop(); i++ {
				for n := range flows {
					if err := p.Set(time.Duration(i), numbered(n), n%4, via, time.Second); err != nil {
						b.Fatal(err)
					}
				}
				p.List()
			}
			perFlow(b, flows, before)
			runtime.KeepAlive(&p)
		})
	}
}

// numbered is the flow of a number; all are different.
func numbered(n int) Flow {
	f := flow(n & 0xffff)
	f.Dst = netip.AddrPortFrom(f.Dst.Addr(), uint16(n>>16))
	return f
}

func held() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func perFlow(b *testing.B, flows int, before uint64) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(flows), "ns/flow")
	b.ReportMetric(float64(max(held(), before)-before)/float64(flows), "B/flow")
}
