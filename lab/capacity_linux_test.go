package lab

import (
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"weft/fabric"
	"weft/internal/kernel/kerneltest"
	"weft/topology"
)

// switchProgram is what runs at all ports of all switches, besides the kernel's routes.
type switchProgram struct {
	name   string
	rule   string // "": the kernel's routes alone
	meters bool
}

var switchPrograms = []switchProgram{{name: "routes"}, {name: "drb", rule: "drb"}, {name: "drill", rule: "drill"},
	{name: "meters", meters: true}, {name: "drill+meters", rule: "drill", meters: true}}

// attach returns what removes it again.
func (p switchProgram) attach(b *testing.B, l *Lab, sw topology.Node) (detach func()) {
	plan, err := l.Plan(sw.ID)
	if err != nil {
		b.Fatal(err)
	}
	names := portNames(plan)
	var ports []fabric.MeterPort
	for _, name := range names {
		ports = append(ports, fabric.MeterPort{Name: name, RateBits: 10e9}) // nothing waits
	}
	in := func(f func() error) {
		if err := l.Do(sw.ID, f); err != nil {
			b.Fatal(sw.Name, err)
		}
	}
	in(func() error {
		if p.rule != "" {
			at, err := fabric.AttachBalance(fabric.BalanceConfig{Rule: p.rule, Ports: ports})
			if err != nil {
				return err
			}
			at.Close()
		}
		if p.meters {
			m, err := fabric.AttachMeter(fabric.MeterConfig{Ports: ports})
			if err != nil {
				return err
			}
			m.Close()
		}
		return nil
	})
	return func() {
		in(func() error {
			if _, err := fabric.DetachBalance(names); err != nil {
				return err
			}
			_, err := fabric.DetachMeter(names)
			return err
		})
	}
}

// permutation is a connection from each host to one of another pod.
type permutation struct {
	arrived atomic.Uint64 // bytes in all
	sending atomic.Bool   // as fast as they can
}

func permute(b *testing.B, l *Lab) *permutation {
	p := new(permutation)
	hosts := kerneltest.Hosts(l.Config.Topology)
	for i, from := range hosts {
		to := hosts[(i+len(hosts)/2)%len(hosts)]
		var listener net.Listener
		err := l.Do(to.ID, func() (err error) {
			listener, err = net.Listen("tcp4", netip.AddrPortFrom(to.Addr, 0).String())
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
		go func() {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			defer in.Close()
			buf := make([]byte, 256<<10)
			for {
				n, err := in.Read(buf)
				p.arrived.Add(uint64(n))
				if err != nil {
					return
				}
			}
		}()
		err = l.Do(from.ID, func() error {
			c, err := net.DialTimeout("tcp4", listener.Addr().String(), kerneltest.Patience)
			if err != nil {
				return err
			}
			b.Cleanup(func() { c.Close(); listener.Close() })
			go func() {
				buf := make([]byte, 256<<10)
				for err := error(nil); err == nil; {
					if !p.sending.Load() {
						time.Sleep(time.Millisecond)
						continue
					}
					_, err = c.Write(buf)
				}
			}()
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return p
}

// BenchmarkBalance_capacity is what all hosts of a fat-tree of k=4 with unshaped links deliver
// together, by the kernel's TCP, without a program at the switches and with each. The rows take
// turns in one lab; a round is all of them. It reports the medians of the rounds: Mbit/s, its
// ratio to routes in the same round, and which share of the time the processors were idle. With
// -benchtime 9x there are nine rounds.
func BenchmarkBalance_capacity(b *testing.B) {
	const warmup, measured = 300 * time.Millisecond, time.Second
	for _, c := range []struct {
		name string
		gso  int
	}{{"super-segments", 0}, {"packets", 2048}} { // of one full packet each
		b.Run(c.name, func(b *testing.B) {
			l := upLab(b, Config{Name: kerneltest.LabName("c"), Topology: kerneltest.Topology(b, "fat-tree:k=4"), Unlimited: true, GSOMaxBytes: c.gso})
			traffic := permute(b, l)
			mbit, ratio, idle := make([][]float64, len(switchPrograms)), make([][]float64, len(switchPrograms)), make([][]float64, len(switchPrograms))
			for b.Loop() {
				for i, p := range switchPrograms {
					var detach []func()
					for n := range l.Config.Topology.Nodes() {
						if n.Layer != topology.LayerHost {
							detach = append(detach, p.attach(b, l, n))
						}
					}
					traffic.sending.Store(true)
					time.Sleep(warmup)
					since, before, start := kerneltest.Idle(b), traffic.arrived.Load(), time.Now()
					time.Sleep(measured)
					rate := float64(traffic.arrived.Load()-before) * 8 / 1e6 / time.Since(start).Seconds()
					traffic.sending.Store(false) // or the programs would wait for a processor
					idle[i], mbit[i] = append(idle[i], since()), append(mbit[i], rate)
					ratio[i] = append(ratio[i], rate/mbit[0][len(mbit[i])-1])
					for _, f := range detach {
						f()
					}
				}
			}
			for i, p := range switchPrograms {
				b.ReportMetric(median(mbit[i]), p.name+"_Mbit/s")
				b.ReportMetric(median(ratio[i]), p.name+"_ratio")
				b.ReportMetric(100*median(idle[i]), p.name+"_idle_%")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}
