package sim

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"weft/bench/sim/tcp"
	"weft/bench/sim/workload"
	"weft/topology"
)

// finite has flows of sizes that are no whole segments, and notes their ends.
func finite(c *Config, ends *[]FlowEnd) {
	l := permutation(c.Topology, c.Seed, 0)
	for i := range l.flows {
		l.flows[i].Bytes = int64(1 + 7919*i)
		l.flows[i].Start = time.Duration(i) * time.Microsecond
	}
	l.flows = append(l.flows, permutation(c.Topology, c.Seed+1, 400_001).flows...)
	c.Workload = l
	c.OnFlow = func(e FlowEnd) { *ends = append(*ends, e) }
}

// A connection of one subflow is plain TCP, to the byte.
func TestConnection_ofOneSubflowIsTCP(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"as it is":       func(*Config) {},
		"ecmp":           func(c *Config) { c.Policy, c.Resequencer = "ecmp", nil },
		"spread":         func(c *Config) { c.Policy, c.Resequencer, c.SpreadSubflows = "ecmp", nil, c.TCP.Subflows > 0 },
		"switches":       func(c *Config) { c.Policy, c.Resequencer = "switch-ecmp", nil },
		"small window":   func(c *Config) { c.TCP.WindowBytes, c.Queues[0].Bytes = 30_000, 12_000 },
		"DCTCP":          func(c *Config) { c.TCP.DCTCP, c.Queues[0].ECNBytes = true, 20_000 },
		"handshake":      func(c *Config) { c.TCP.Handshake = true },
		"no resequencer": func(c *Config) { c.Resequencer = nil },
	} {
		t.Run(name, func(t *testing.T) {
			var results [2]*Result
			var ends [2][]FlowEnd
			for subflows := range 2 {
				c := drbSetting(parse(t, "fat-tree:k=4,host-rate=1000,fabric-rate=1000,core-rate=1000"), "rb")
				c.Queues = []Queue{{Bytes: 40_000}} // losses
				c.Duration, c.Warmup = 60*time.Millisecond, time.Millisecond
				c.TCP.Subflows = subflows
				change(&c)
				finite(&c, &ends[subflows])
				results[subflows] = run(t, c)
			}
			if results[0].Retransmits == 0 || len(ends[0]) == 0 {
				t.Errorf("%d sent again, %d flows ended: says nothing", results[0].Retransmits, len(ends[0]))
			}
			if !reflect.DeepEqual(results[0], results[1]) || !reflect.DeepEqual(ends[0], ends[1]) {
				t.Errorf("%d packets, %d sent again, %d flows, end %v; of one subflow %d, %d, %d, %v",
					results[0].DataPackets, results[0].Retransmits, len(ends[0]), results[0].End,
					results[1].DataPackets, results[1].Retransmits, len(ends[1]), results[1].End)
			}
		})
	}
}

// Nothing is lost or doubled when paths die: one, of which nobody is told, so that other
// subflows send what it had, or all but one, of which hosts learn.
func TestConnection_survivesPaths(t *testing.T) {
	for _, die := range []struct {
		spines int
		told   time.Duration
	}{{1, time.Hour}, {3, 30 * time.Millisecond}} {
		c := drbSetting(parse(t, "leaf-spine:leaves=2,spines=4,hosts=4,host-rate=1000,fabric-rate=1000"), "ecmp")
		c.Resequencer, c.SpreadSubflows = nil, true
		c.TCP.Subflows = 4
		c.Duration, c.Warmup = 10*time.Second, 0
		ended := 0
		l := new(list)
		want := make([]int64, 8)
		for h := range topology.NodeID(8) {
			f := workload.Flow{Src: h, Dst: (h + 4) % 8, Bytes: 2_000_001}
			want[f.Dst] = f.Bytes
			l.flows = append(l.flows, f)
		}
		c.Workload = l
		c.OnFlow = func(e FlowEnd) {
			if ended++; e.FCT <= 0 || e.FCT > time.Second || e.Timeouts == 0 {
				t.Errorf("%+v: connection from %d took %v with %d timeouts", die, e.Src, e.FCT, e.Timeouts)
			}
		}
		for spine := range die.spines {
			var links []topology.LinkID
			for n := range c.Topology.Nodes() {
				if n.Layer == topology.LayerEdge {
					links = append(links, upPorts(c.Topology, n.ID)[spine].Link)
				}
			}
			c.Failures = append(c.Failures, Failure{At: time.Duration(spine+1) * 3 * time.Millisecond, Links: links, Told: die.told})
		}
		if r := run(t, c); ended != 8 || !reflect.DeepEqual(r.DeliveredBytes, want) {
			t.Errorf("%+v: %d of 8 connections ended; delivered %v, want %v", die, ended, r.DeliveredBytes, want)
		}
	}
}

// Subflows that are spread have paths of their own, as long as there are any.
func TestConnection_spreads(t *testing.T) {
	c := drbSetting(parse(t, "fat-tree:k=4,host-rate=1000,fabric-rate=1000,core-rate=1000"), "ecmp")
	c.Resequencer, c.SpreadSubflows = nil, true
	c.TCP.Subflows = 6
	c.Workload = &list{flows: permutation(c.Topology, 1, 0).flows}
	s, err := newSimulation(c)
	if err != nil {
		t.Fatal(err)
	}
	s.run()
	seen := map[int]bool{}
	for n := range s.flows.n {
		f := s.flows.at(n)
		used := map[int]int{}
		paths := 0
		for _, i := range f.whole.subflows {
			var path int
			path, paths = s.hosts.PathOfFlow(&s.flows.at(i).path)
			used[path]++
		}
		for path, n := range used {
			if paths > 0 && (n > (6+paths-1)/paths || len(used) != min(6, paths)) {
				t.Errorf("%d of 6 subflows by path %d; all: %v", n, path, used)
			}
		}
		seen[paths] = true
	}
	if !seen[2] || !seen[4] {
		t.Errorf("pairs had %v paths, want 2 and 4", seen)
	}
}

// More subflows find more of the paths that are there (Raiciu, SIGCOMM 2011, Fig. 2).
func TestConnection_moreSubflowsGetMore(t *testing.T) {
	one := 0.
	for _, subflows := range []int{1, 2, 4} {
		c := drbSetting(parse(t, "fat-tree:k=4,host-rate=1000,fabric-rate=1000,core-rate=1000"), "ecmp")
		c.Resequencer, c.SpreadSubflows = nil, true
		c.TCP.Subflows = subflows
		c.Duration, c.Warmup = 100*time.Millisecond, 40*time.Millisecond
		c.Workload = permutation(c.Topology, 3, 0)
		got := goodput(c, run(t, c)) / 1e6
		t.Logf("%d subflows: %.0f Mbit/s", subflows, got)
		if subflows == 1 {
			one = got
		} else if got < 1.2*one {
			t.Errorf("%d subflows get %.0f Mbit/s, one %.0f", subflows, got, one)
		}
	}
}

func TestConnection_whatIsWrong(t *testing.T) {
	c := drbSetting(parse(t, "fat-tree:k=4,host-rate=1000,fabric-rate=1000,core-rate=1000"), "rb")
	c.Workload = permutation(c.Topology, 1, 0)
	c.SpreadSubflows = true
	if _, err := Run(c); err == nil || !strings.Contains(err.Error(), "SpreadSubflows") {
		t.Errorf("by packets: error %v", err)
	}
	c.SpreadSubflows, c.TCP.Subflows = false, tcp.MaxSubflows+1
	if _, err := Run(c); err == nil || !strings.Contains(err.Error(), "Subflows of 33") {
		t.Errorf("33 subflows: error %v", err)
	}
}
