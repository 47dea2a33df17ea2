package sim

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"hash"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"weft/bench/sim/aqm"
	"weft/bench/sim/tcp"
	"weft/bench/sim/workload"
	"weft/policy"
	"weft/resequencer"
	"weft/topology"
)

var same = flag.Bool("same", false, "write testdata/same.txt anew")

// TestRun_sameAsBefore compares whole results with those of earlier commits: who makes the
// simulator faster must not change what it computes. If a result changes for a reason, write the
// file anew with -same and say the reason.
func TestRun_sameAsBefore(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("floating-point sums are rounded otherwise where multiplication and addition are one instruction")
	}
	var got []string
	for _, c := range sameCases(t) {
		got = append(got, fmt.Sprintf("%s %x", c.name, digest(t, c.Config)))
	}
	const file = "testdata/same.txt"
	if *same {
		if err := os.WriteFile(file, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(string(data))
	for i, line := range got {
		f := strings.Fields(line)
		if 2*i+1 >= len(want) || want[2*i] != f[0] {
			t.Fatalf("%s: case %d is %s; write it anew with -same", file, i, f[0])
		}
		if want[2*i+1] != f[1] {
			t.Errorf("%s: another result than before", f[0])
		}
	}
}

type sameCase struct {
	name string
	Config
}

// sameCases is runs that together go through all of the simulator.
func sameCases(t *testing.T) (list []sameCase) {
	const leafSpine = "leaf-spine:leaves=4,spines=3,hosts=6,host-rate=1000,fabric-rate=2000"
	add := func(name, spec, policy string, change func(c *Config)) {
		list = append(list, sameCase{name, sameConfig(t, spec, policy)})
		if change != nil {
			change(&list[len(list)-1].Config)
		}
	}
	for _, name := range everyPolicy() {
		add(name, "fat-tree:k=4"+rates, name, nil)
		add(name+"-leaf-spine", leafSpine, name, func(c *Config) {
			c.TCP.DCTCP, c.Resequencer = false, nil
		})
	}
	for _, d := range []resequencer.Discipline{resequencer.Presto, resequencer.Sequence, resequencer.Juggler, resequencer.Off} {
		for _, name := range []string{"rb", "presto", "switch-drill"} {
			add(fmt.Sprintf("%s-%v", name, d), "fat-tree:k=4"+rates, name, func(c *Config) {
				c.Resequencer = &resequencer.Config{Discipline: d}
				c.TCP.ECN, c.TCP.DCTCP = true, false
			})
		}
	}
	add("bounds", "fat-tree:k=4"+rates, "rb", func(c *Config) {
		c.Resequencer = &resequencer.Config{Discipline: resequencer.Sequence, MinHold: 10 * time.Millisecond, FlowPackets: 5, PeerPackets: 8, TotalPackets: 30}
	})
	add("wide-window", "fat-tree:k=4"+rates, "drb", func(c *Config) {
		c.TCP = tcp.Config{WindowBytes: 1 << 20, MSS: 1001, HeaderBytes: 60, Handshake: true, InitialWindow: 3, DupThresh: 5}
		c.HostQueueBytes = 200_000
	})
	add("slow-links", "fat-tree:k=4"+rates+",e0.0-a0.2=100", "letflow", func(c *Config) {
		c.Known = parse(t, "fat-tree:k=4"+rates)
		c.Delay = 0
	})
	add("long", "fat-tree:k=4"+rates, "drb", func(c *Config) {
		c.Duration, c.TCP.RTOMin = 20*time.Second, 300*time.Millisecond
		c.Queues = []Queue{{Bytes: 6000}}
	})
	add("racks", "fat-tree:k=4"+rates, "luopan", func(c *Config) { c.Spray.RackSamples, c.Spray.SamplesOnly = true, true })
	add("engines", "fat-tree:k=8"+rates, "switch-drill", func(c *Config) {
		c.Spray = SprayOptions{DrillSamples: 3, DrillMemory: 2, DrillEngines: 4}
	})
	add("vl2", "vl2:d0=2,d1=4,d2=4,hosts=3,host-rate=1000,fabric-rate=5000,core-rate=5000", "drb", nil)
	for _, name := range []string{"drb", "switch-rr", "luopan"} {
		for _, slotted := range []bool{false, true} {
			add(fmt.Sprintf("open-%s-%v", name, slotted), "fat-tree:k=4"+rates, name, func(c *Config) {
				c.OpenLoop = &OpenLoop{Load: .6, PacketBytes: 700, Slotted: slotted}
				if name == "drb" {
					for h := range c.Topology.NumHosts() {
						c.OpenLoop.To = append(c.OpenLoop.To, permutationTo(c.Topology.NumHosts(), h))
					}
				}
			})
		}
	}
	for _, name := range []string{"drb", "ecmp", "presto"} {
		add("graph-"+name, leafSpine, name, func(c *Config) {
			c.Graph, c.Topology, c.Failures = asGraph(t, c.Topology), nil, nil
		})
	}
	for _, name := range []string{"ecmp", "switch-ecmp", "drb"} {
		for _, connections := range []int{0, 2} {
			add(fmt.Sprintf("subflows-%s-%d", name, connections), "fat-tree:k=4"+rates, name, func(c *Config) {
				c.Resequencer, c.TCP.Subflows, c.Connections, c.SpreadSubflows = nil, 4, connections, name == "ecmp"
			})
		}
		add("kept-"+name, "fat-tree:k=4"+rates, name, func(c *Config) { c.Connections = 2 })
	}
	add("managed", "fat-tree:k=4"+rates, "drb", func(c *Config) {
		c.Queues[1].ECNBytes = 0
		c.Queues[1].Manage = func(port, _ int) aqm.Discipline {
			if port%3 == 0 {
				return nil
			}
			red, err := aqm.NewRED(aqm.REDConfig{
				Queue: aqm.VirtualQueue{RateMbit: 900, Room: 40_000}, Min: 3_000, Max: 20_000, MaxP: .3, Weight: .1, Mark: port%2 == 0, Seed: uint64(port),
			})
			if err != nil {
				t.Fatal(err)
			}
			return red
		}
	})
	for _, name := range []string{"switch-conga", "switch-ecmp"} {
		add("parallel-"+name, leafSpine, name, func(c *Config) { c.Parallel, c.Failures = 3, nil })
	}
	add("ages", "fat-tree:k=4"+rates, "luopan", func(c *Config) { c.AckUnits, c.Spray.Turns = true, true })
	return list
}

// sameConfig has flows of all sizes, of which some begin when others end, losses, marks, and a
// link that fails and comes back.
func sameConfig(t *testing.T, spec, name string) Config {
	topo := parse(t, spec)
	hosts := topo.NumHosts()
	l := permutation(topo, 7, 150_000)
	for i := range l.flows {
		f := &l.flows[i]
		f.Start = time.Duration(i/3) * 10 * time.Microsecond
		f.Bytes += int64(i*7919) % 20_000
	}
	left := 300
	l.then = func(f workload.Flow, at time.Duration, begin func(workload.Flow)) {
		if left--; left >= 0 {
			f.Start = at + time.Duration(left)*time.Microsecond
			f.Dst = topology.NodeID((int(f.Dst) + 1 + left%3) % hosts)
			if f.Dst == f.Src {
				f.Dst = (f.Dst + 1) % topology.NodeID(hosts)
			}
			f.Bytes = int64(left*left)*3 + 1
			begin(f)
		}
	}
	link := topology.LinkID(hosts + 1)
	return Config{
		Topology: topo, Seed: 5, Policy: name, Options: policy.Options{},
		Duration: 40 * time.Millisecond, Warmup: 500 * time.Microsecond,
		Delay:       2 * time.Microsecond,
		Queues:      []Queue{{RateMbit: 2000, Bytes: 60_000, ECNBytes: 20_000}, {Bytes: 30_000, ECNBytes: 9_000}},
		Resequencer: &resequencer.Config{},
		TCP:         tcp.Config{DCTCP: true, RTOMin: 2 * time.Millisecond},
		Workload:    l,
		Failures: []Failure{
			{At: 1500 * time.Microsecond, Links: []topology.LinkID{link, link + 3, 2}, Told: time.Millisecond},
			{At: 4 * time.Millisecond, Links: []topology.LinkID{2, link}, Up: true, Told: 100 * time.Microsecond},
		},
	}
}

// digest is the hash of all that a run gives. Sums of floating-point numbers may differ in their
// last digits.
func digest(t *testing.T, c Config) []byte {
	h := sha256.New()
	c.OnFlow = func(e FlowEnd) { fmt.Fprintln(h, e) }
	c.SampleEvery = time.Millisecond
	c.OnSample = func(now time.Duration, v View) { fmt.Fprintln(h, now, v.QueueBytes(3), v.SentBytes(3), v.Delivered(1)) }
	r := run(t, c)
	for i := range r.Places {
		p := &r.Places[i]
		fmt.Fprintf(h, "%d %d %d %.9g %.6g %d %.9g\n", p.Packets, p.Drops, p.Marks, p.MeanBytes, p.VarBytes, p.MaxBytes, p.TimeMeanBytes)
		histogram(h, p.Wait)
	}
	for _, x := range []*hdrhistogram.Histogram{r.Latency, r.RTT, r.Resequencing} {
		histogram(h, x)
	}
	fmt.Fprintln(h, r.End, r.DeliveredBytes, r.Ports, r.OutOfOrder, r.Resequencer,
		r.DataPackets, r.AckPackets, r.ProbePackets, r.Retransmits, r.Timeouts, r.Flows, r.PacketHops)
	return h.Sum(nil)[:8]
}

func histogram(h hash.Hash, x *hdrhistogram.Histogram) {
	counts := x.Export().Counts
	for i := range slices.Backward(counts) {
		if counts[i] != 0 {
			fmt.Fprint(h, i, counts[i], " ")
		}
	}
}
