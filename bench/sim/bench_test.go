package sim

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"weft/topology"
)

// cpuTime is what the process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

var sizes = []int{8, 16, 24, 48}

// benchmark reports packet-hops per CPU-second and the heap that a run leaves.
func benchmark(b *testing.B, config func(topo *topology.Topology) Config) {
	for _, k := range sizes {
		topo := parse(b, fmt.Sprintf("fat-tree:k=%d,host-rate=1000,fabric-rate=1000,core-rate=1000", k))
		b.Run(fmt.Sprintf("hosts=%d", topo.NumHosts()), func(b *testing.B) {
			hops, cpu := uint64(0), time.Duration(0)
			for b.Loop() {
				c := config(topo)
				s, err := newSimulation(c)
				if err != nil {
					b.Fatal(err)
				}
				begin := cpuTime()
				s.run()
				cpu += cpuTime() - begin
				hops += s.result().PacketHops
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				b.ReportMetric(float64(m.HeapAlloc)/1e6, "heap-MB")
			}
			b.ReportMetric(float64(hops)/cpu.Seconds()/1e6, "Mhops/cpu-s")
			b.ReportMetric(float64(hops)/float64(b.N)/1e6, "Mhops")
		})
	}
}

// simulated is a time in which all sizes have about as many packets.
func simulated(topo *topology.Topology, hosts time.Duration) time.Duration {
	return hosts / time.Duration(topo.NumHosts())
}

func BenchmarkTCP(b *testing.B) {
	benchmark(b, func(topo *topology.Topology) Config {
		c := drbSetting(topo, "drb")
		c.TCP.WindowBytes = 64 << 10
		c.Duration = simulated(topo, 50*time.Second)
		c.Warmup = c.Duration / 4
		c.Workload = permutation(topo, 3, 0)
		return c
	})
}

func BenchmarkOpenLoop(b *testing.B) {
	benchmark(b, func(topo *topology.Topology) Config {
		c := drbSetting(topo, "drb")
		c.Duration = simulated(topo, 80*time.Second)
		c.Warmup = c.Duration / 4
		c.OpenLoop = &OpenLoop{Load: 0.9, PacketBytes: 1500, To: make([]topology.NodeID, topo.NumHosts())}
		for _, f := range permutation(topo, 3, 0).flows {
			c.OpenLoop.To[f.Src] = f.Dst
		}
		return c
	})
}
