package spray

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weft/topology"
)

// passed is the ports between switches that path number n passes, as package
// topology has it.
func passed(topo *topology.Topology, set topology.PathSet, n int) (ports []int32) {
	path := set.Path(n)
	for i := 1; i+1 < len(path.Links); i++ {
		l := path.Links[i]
		port := 2 * int32(l)
		if topo.Link(l).A != path.Hops[i] {
			port++
		}
		ports = append(ports, port)
	}
	return ports
}

// With as many samples as there are paths a flowcell takes one whose queues, of all
// ports on the way, are the least. Beside it, all paths tried one by one.
func TestUp_luopanTakesTheLeastCongestedPath(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, spec := range []string{leafSpine, fatTree} {
		whole := parse(t, spec)
		for round := range 200 {
			topo := whole
			if round%2 == 1 {
				topo = someDown(whole, rng, 1)
			}
			q := queues{}
			for port := range int32(2 * topo.NumLinks()) {
				q[port] = rng.IntN(20 * QueueUnit)
			}
			src, dst := topology.NodeID(0), topology.NodeID([]int{2, 5, 12}[round%3])
			set := topo.PathsOrAll(src, dst)
			if set.Direct() {
				continue
			}
			s := newSwitch(t, SwitchConfig{Topology: topo, Name: switchLuopan, Seed: uint64(round), Samples: 4}, q)
			least, by := 1<<30, map[int]int{} // by path, queues
			for _, n := range set.Live {
				for _, port := range passed(topo, set, n) {
					by[n] += q[port] / QueueUnit
				}
				least = min(least, by[n])
			}
			sh := shapeOf(topo)
			p := &Packet{Src: src, Dst: dst, Hash: rng.Uint64(), Bytes: 1500}
			path := s.Up(sh.edge, 0, p, 0)
			if len(set.Bases) == 2 {
				path = path*sh.cores + s.Up(sh.agg+topology.NodeID(path), 0, p, 0)
			}
			if got, ok := by[path]; !ok || got != least {
				t.Fatalf("%s, %d to %d: path %d has %d units before it, live %v; the least is %d", topo, src, dst, path, got, ok, least)
			}
		}
	}
}

func TestUp_luopanKeepsARound(t *testing.T) {
	topo := parse(t, leafSpine)
	q, sh := queues{}, shapeOf(topo)
	s := newSwitch(t, SwitchConfig{Topology: topo, Name: switchLuopan, Seed: 1, Samples: 4, FlowcellBytes: 15000, Expiry: 40 * time.Microsecond}, q)
	fill := func(free int) {
		for port := range 4 {
			q[upPort(sh.uplink(16))+2*int32(port)] = 30000
		}
		q[upPort(sh.uplink(16))+2*int32(free)] = 0
	}
	fill(1)
	if cell := ups(s, 1, 10, 0, 0); slices.Min(cell) != 1 || slices.Max(cell) != 1 {
		t.Errorf("a flowcell takes %v", cell)
	}
	fill(2)
	if cell := ups(s, 1, 10, 39*time.Microsecond, 0); cell[0] != 1 {
		t.Errorf("the next within the round takes %v", cell)
	}
	if cell := ups(s, 2, 5, 40*time.Microsecond, 0); cell[0] != 2 {
		t.Errorf("one of the round after takes %v", cell)
	}
	fill(3)
	cell := ups(s, 2, 10, 90*time.Microsecond, 0)
	if slices.Max(cell[:5]) != 2 || slices.Min(cell[5:]) != 3 {
		t.Errorf("a flowcell is half over, and ports are %v", cell)
	}
}

// Two samples of four paths: the worst is never taken, each other is. With one
// sample it is.
func TestUp_luopanDrawsDistinctPaths(t *testing.T) {
	topo := parse(t, leafSpine)
	sh := shapeOf(topo)
	first := upPort(sh.uplink(16))
	q := queues{first: 0, first + 2: 15000, first + 4: 30000, first + 6: 45000}
	for samples, most := range map[int]int{1: 3, 2: 2} {
		s := newSwitch(t, SwitchConfig{Topology: topo, Name: switchLuopan, Seed: 1, Samples: samples, Expiry: time.Microsecond}, q)
		var list []int
		for i := range 500 {
			list = append(list, ups(s, mix(2, uint64(i)), 1, time.Duration(i)*time.Microsecond, 0)...)
		}
		slices.Sort(list)
		if used := slices.Compact(slices.Clone(list)); len(used) != most+1 || used[most] != most {
			t.Errorf("%d samples: ports %v", samples, used)
		}
	}
}

func TestSetTopology_luopanLeavesADeadPath(t *testing.T) {
	topo := parse(t, leafSpine)
	s := newSwitch(t, SwitchConfig{Topology: topo, Name: switchLuopan, Seed: 1}, queues{})
	sh, was := shapeOf(topo), ups(s, 1, 3, 0, 0)[0]
	s.SetTopology(topo.Without(sh.uplink(16) + topology.LinkID(was)))
	if now := ups(s, 1, 3, 0, 0); slices.Contains(now, was) || slices.Contains(now, -1) {
		t.Errorf("port %d is dead, packets take %v", was, now)
	}
}

// What is chosen is what queues were an age before, at least, and two ages and an expiry
// before, at most: one path is free at a time, the next one from each step on.
func TestUp_luopanSamplesHaveTheirAge(t *testing.T) {
	topo := parse(t, leafSpine)
	sh := shapeOf(topo)
	const us, step, expiry = time.Microsecond, 500 * time.Microsecond, 40 * time.Microsecond
	for _, age := range []time.Duration{20 * us, 100 * us} {
		q := queues{}
		s := newSwitch(t, SwitchConfig{Topology: topo, Name: switchLuopan, Seed: 1, Samples: 4, Expiry: expiry, SampleAge: age}, q)
		first := upPort(sh.uplink(16))
		free := func(now time.Duration) int { return int(now/step) % 4 }
		youngest, oldest := step, time.Duration(0)
		for now := time.Duration(0); now < 40*step; now += us {
			for port := range 4 {
				q[first+2*int32(port)] = 30000
			}
			q[first+2*int32(free(now))] = 0
			got := ups(s, uint64(now)+1, 1, now, 0)[0] // a flow of its own: a choice
			if now < step {
				continue // the first are random
			}
			since := now % step // the time for which it has been free
			switch got {
			case free(now):
				youngest = min(youngest, since)
			case free(now - step):
				oldest = max(oldest, since)
			default:
				t.Fatalf("age %v, at %v: port %d, which is not free since two steps", age, now, got)
			}
		}
		if youngest < age || youngest > age+expiry+age || oldest > 2*age+expiry+us || oldest < age {
			t.Errorf("age %v: samples are seen from %v to %v after they changed", age, youngest, oldest)
		}
	}
}
