package sim

import (
	"strings"
	"testing"
	"time"

	"weft/bench/sim/workload"
	"weft/resequencer"
	"weft/topology"
)

func TestRun_errors(t *testing.T) {
	topo := parse(t, "fat-tree:k=4"+rates)
	for _, c := range []struct {
		change func(c *Config)
		want   string
	}{
		{func(c *Config) { c.Topology = nil }, "Topology is missing"},
		{func(c *Config) { c.Topology = parse(t, "fat-tree:k=4") }, "has no rate"},
		{func(c *Config) { c.Duration = 0 }, "Duration is 0s"},
		{func(c *Config) { c.Warmup = c.Duration }, "Warmup is"},
		{func(c *Config) { c.Delay = -1 }, "Delay is"},
		{func(c *Config) { c.Queues = nil }, "Queues: none is for links of 1000 Mbit/s"},
		{func(c *Config) { c.Queues[0].Bytes = 0 }, "Queues[0].Bytes"},
		{func(c *Config) { c.Queues[0].ECNBytes = -1 }, "Queues[0].ECNBytes"},
		{func(c *Config) { c.HostQueueBytes = -1 }, "HostQueueBytes"},
		{func(c *Config) { c.Policy = "best" }, "best"},
		{func(c *Config) { c.Options.FlowcellBytes = 1 }, "FlowcellBytes"},
		{func(c *Config) { c.Policy, c.Spray.DrillSamples = "switch-drill", -1 }, "Samples"},
		{func(c *Config) { c.Resequencer = &resequencer.Config{Hold: -1} }, "Resequencer"},
		{func(c *Config) { c.TCP.MSS = 1 }, "TCP"},
		{func(c *Config) { c.Workload = nil }, "Workload is missing"},
		{func(c *Config) { c.Workload = &list{flows: []workload.Flow{{Src: 3, Dst: 3}}} }, "from host 3 to 3"},
		{func(c *Config) { c.Workload = &list{flows: []workload.Flow{{Src: 3, Dst: 16}}} }, "from host 3 to 16"},
		{func(c *Config) { c.OnSample = func(time.Duration, View) {} }, "SampleEvery"},
		{func(c *Config) { c.Failures = []Failure{{Links: []topology.LinkID{48}}} }, "Failures[0].Links: no link 48"},
		{func(c *Config) { c.Failures = []Failure{{At: -1}} }, "Failures[0]: At"},
		{func(c *Config) { c.OpenLoop = &OpenLoop{Load: 2, PacketBytes: 100} }, "OpenLoop.Load"},
		{func(c *Config) { c.OpenLoop = &OpenLoop{Load: 1, PacketBytes: 40} }, "OpenLoop.PacketBytes"},
		{func(c *Config) { c.OpenLoop = &OpenLoop{Load: 1, PacketBytes: 100, To: make([]topology.NodeID, 3)} }, "OpenLoop.To has 3"},
		{func(c *Config) {
			c.OpenLoop = &OpenLoop{Load: 1, PacketBytes: 100, To: make([]topology.NodeID, 16)}
			c.OpenLoop.To[5] = 16
		}, "OpenLoop.To[5]"},
		{func(c *Config) {
			c.Topology = parse(t, "leaf-spine:leaves=1,spines=1,hosts=3,host-rate=1000,fabric-rate=1000")
			c.OpenLoop = &OpenLoop{Load: 1, PacketBytes: 100}
		}, "OpenLoop.To is nil"},
	} {
		config := drbSetting(topo, "drb")
		config.Workload = permutation(topo, 1, 1000)
		c.change(&config)
		_, err := Run(config)
		if err == nil {
			t.Errorf("no error; want %q", c.want)
			continue
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %q; want %q in it", err, c.want)
		}
	}
}

// FuzzRun: whatever the Config, a Result or an error, soon.
func FuzzRun(f *testing.F) {
	f.Add(uint64(1), uint8(0), 5000, 128<<10, 0, 64<<10, 10, 1000, uint8(3), 20_000)
	f.Add(uint64(2), uint8(8), 0, 1500, 1500, 1460, 1, 1, uint8(0), 1)
	f.Add(uint64(3), uint8(19), 1, 3000, 0, 1<<20, 1000, 100000, uint8(255), 65_000)
	f.Add(uint64(4), uint8(12), 1, 9000, 0, 1<<20, 1000, 10, uint8(255), 65_000)
	topologies := []*topology.Topology{
		parse(f, "fat-tree:k=4"+rates),
		parse(f, "leaf-spine:leaves=3,spines=2,hosts=2,host-rate=400000,fabric-rate=7"),
		parse(f, "vl2:d0=2,d1=4,d2=4,hosts=2,host-rate=10000,fabric-rate=25000,core-rate=40000"),
	}
	f.Fuzz(func(t *testing.T, seed uint64, policy uint8, delay, queue, ecn, window, initial, load int, flags uint8, bytes int) {
		topo := topologies[seed%3]
		names := everyPolicy()
		c := drbSetting(topo, names[int(policy)%len(names)])
		c.Seed = seed
		c.Duration, c.Warmup = 300*time.Microsecond, 100*time.Microsecond
		c.Delay = time.Duration(delay)
		c.Queues = []Queue{{Bytes: queue, ECNBytes: ecn}}
		c.TCP.WindowBytes = window
		c.TCP.InitialWindow = initial
		c.TCP.DCTCP = flags&1 != 0
		c.TCP.Handshake = flags&2 != 0
		c.Spray.RackSamples = flags&4 != 0
		c.Options.Groups = flags&8 != 0
		if flags&16 != 0 {
			c.Resequencer = nil
		}
		if flags&32 != 0 {
			c.OpenLoop = &OpenLoop{Load: float64(load) / 1000, PacketBytes: bytes, Slotted: flags&64 != 0}
		}
		if flags&128 != 0 {
			l := topology.LinkID(int(seed>>8) % topo.NumLinks())
			c.Failures = []Failure{{At: 50 * time.Microsecond, Links: []topology.LinkID{l}}, {At: 200 * time.Microsecond, Links: []topology.LinkID{l}, Up: true}}
		}
		c.Workload = permutation(topo, seed, int64(bytes))
		r, err := Run(c)
		if (r == nil) == (err == nil) {
			t.Fatalf("result %v, error %v", r, err)
		}
	})
}
