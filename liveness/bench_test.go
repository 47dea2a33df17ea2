package liveness

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"weft/encap"
	"weft/topology"
)

// large is a host of a fat-tree of 27,648 that talks to 256 others: 600
// boomerangs and 147,456 other paths.
func large(b *testing.B) *Watcher {
	b.Helper()
	topo, err := topology.Parse("fat-tree:k=48")
	if err != nil {
		b.Fatal(err)
	}
	w, err := New(Config{Topology: topo})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 256 {
		dst := topology.NodeID(1000 + i*100)
		w.Active(topo.Node(dst).Addr, topo.Node(dst).Addr, 0)
	}
	return w
}

// answerAll lets time pass until t, and everybody answer at once.
func answerAll(w *Watcher, t time.Duration) (probes int) {
	buf := make([]byte, 0, encap.ProbeLen)
	for now := w.Next(); now <= t; now = w.Next() {
		w.Tick(now)
		w.Probes(func(p *Probe) {
			buf = p.Append(buf[:0])
			if p.Kind() == encap.ProbeRequest {
				encap.ReplyProbe(buf)
			}
			w.Answer(buf, now)
			probes++
		})
	}
	return probes
}

func keep(w *Watcher, now time.Duration) {
	for _, g := range w.order {
		w.Active(g.dst, g.address, now)
	}
}

// A probe sent and answered, all told.
func BenchmarkProbe_k48(b *testing.B) {
	w := large(b)
	now := time.Duration(0)
	probes := 0
	b.ReportAllocs()
	b.ResetTimer()
	for probes < b.N {
		now += 500 * time.Millisecond
		probes += answerAll(w, now)
		keep(w, now)
	}
	b.ReportMetric(float64(probes)/now.Seconds(), "probes/s-virtual")
}

func BenchmarkSent_k48(b *testing.B) {
	w := large(b)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		w.Sent(w.order[i%256].dst, i%576, 1)
	}
}

// Losses on one path, all others being fine: the whole path set is looked at.
func BenchmarkLost_k48(b *testing.B) {
	w := large(b)
	now := time.Duration(0)
	for i := range 576 * 40 {
		w.Sent(w.order[0].dst, i%576, 1)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		now += 10 * time.Microsecond
		w.Lost(w.order[0].dst, 7, 1, now)
	}
}

// A destination is new.
func BenchmarkActive_k48(b *testing.B) {
	topo, err := topology.Parse("fat-tree:k=48")
	if err != nil {
		b.Fatal(err)
	}
	w, err := New(Config{Topology: topo, MaxDestinations: 1})
	if err != nil {
		b.Fatal(err)
	}
	var hosts []netip.Addr
	for i := range 20000 {
		hosts = append(hosts, topo.Node(topology.NodeID(1000+i)).Addr)
	}
	now := time.Duration(0)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		now += 2 * activeFor
		w.Active(hosts[i%20000], hosts[i%20000], now)
	}
}

// Verdicts change: one more link suspected, and one less.
func BenchmarkTopology_k48(b *testing.B) {
	for _, far := range []bool{false, true} {
		b.Run(fmt.Sprintf("far=%v", far), func(b *testing.B) {
			w := large(b)
			w.Topology()
			p := &w.near.paths[50]
			if far {
				p = &w.order[7].paths[50]
			}
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				if p.cause == fine {
					w.convict(p, dead)
				} else {
					w.readmit(p)
				}
				w.Topology()
			}
		})
	}
}

// A link of some pod flaps, as link-state updates say.
func BenchmarkSetTopology_k48(b *testing.B) {
	w := large(b)
	w.Topology()
	whole := w.base
	l, err := whole.LinkByName("a20.30-c7.3")
	if err != nil {
		b.Fatal(err)
	}
	flap := whole.Without(l.ID)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		t := whole
		if i%2 == 0 {
			t = flap
		}
		if err := w.SetTopology(t, 0); err != nil {
			b.Fatal(err)
		}
		w.Topology()
	}
}

func BenchmarkMemory_k48(b *testing.B) {
	var before, after runtime.MemStats
	for range b.N {
		runtime.GC()
		runtime.ReadMemStats(&before)
		w := large(b)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB")
		runtime.KeepAlive(w)
	}
}
