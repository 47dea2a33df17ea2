package spray

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/topology"
)

// ups has a switch send so many packets of 1,500 bytes of a flow from host 0 to 12,
// one every gap, and returns the ports.
func ups(s Switch, hash uint64, packets int, from, gap time.Duration) (list []int) {
	for i := range packets {
		list = append(list, s.Up(16, 0, &Packet{Src: 0, Dst: 12, Hash: hash, Bytes: 1500}, from+time.Duration(i)*gap))
	}
	return list
}

func TestUp_perFlow(t *testing.T) {
	for _, name := range []string{switchECMP, switchWCMP, switchDrillFlow} {
		s := newSwitch(t, SwitchConfig{Topology: parse(t, leafSpine), Name: name, Seed: 1}, queues{})
		var used []int
		for flow := range 80 {
			list := ups(s, mix(1, uint64(flow)), 20, 0, time.Microsecond)
			if slices.Min(list) != slices.Max(list) {
				t.Fatalf("%s: a flow takes %v", name, list)
			}
			used = append(used, list[0])
		}
		for port := range 4 {
			n := 0
			for _, p := range used {
				if p == port {
					n++
				}
			}
			if n < 8 || n > 36 { // 20 are expected, 3.9 is a standard deviation
				t.Errorf("%s: %d of 80 flows take port %d", name, n, port)
			}
		}
	}
}

func TestUp_perPacket(t *testing.T) {
	topo := parse(t, leafSpine)
	rr := newSwitch(t, SwitchConfig{Topology: topo, Name: switchRR, Seed: 1}, queues{})
	if list := ups(rr, 1, 12, 0, 0); !cycles(list, []int{0, 1, 2, 3}) {
		t.Errorf("round robin takes %v", list)
	}
	// Each engine by itself: hosts 0 and 2 have one, 1 has the other.
	two := newSwitch(t, SwitchConfig{Topology: topo, Name: switchRR, Seed: 1, Engines: 2}, queues{})
	var lists [2][]int
	for i := range 24 {
		host := int32(i * i % 3)
		lists[host%2] = append(lists[host%2], two.Up(16, 2*host, &Packet{Src: topology.NodeID(host), Dst: 12, Bytes: 1500}, 0))
	}
	if !cycles(lists[0], []int{0, 1, 2, 3}) || !cycles(lists[1], []int{0, 1, 2, 3}) {
		t.Errorf("round robin of two engines takes %v", lists)
	}
	rb := newSwitch(t, SwitchConfig{Topology: topo, Name: switchRB, Seed: 1}, queues{})
	counts := [4]int{}
	const n = 8000
	for _, p := range ups(rb, 1, n, 0, 0) {
		counts[p]++
	}
	for _, c := range counts {
		if c < n/4-200 || c > n/4+200 { // 39 is a standard deviation
			t.Errorf("random takes %v", counts)
		}
	}
}

// The shortest queue in time, not in bytes: the second port is twice as fast.
func TestUp_localTakesTheShortestQueue(t *testing.T) {
	topo := parse(t, "leaf-spine:leaves=4,spines=4,hosts=4,host-rate=10000,fabric-rate=10000,e0.0-a0.1=20000")
	q := queues{}
	s := newSwitch(t, SwitchConfig{Topology: topo, Name: switchLocal, Seed: 1, FlowcellBytes: 15000}, q)
	first := upPort(topo.Ports(16)[4].Link)
	for i, bytes := range []int{6000, 9000, 5000, 7000} {
		q[first+2*int32(i)] = bytes
	}
	cell := ups(s, 1, 10, 0, 0) // a flowcell's
	if slices.Min(cell) != 1 || slices.Max(cell) != 1 {
		t.Errorf("flowcell takes %v", cell)
	}
	q[first+2] = 20000
	if next := ups(s, 1, 10, 0, 0); slices.Min(next) != 2 || slices.Max(next) != 2 {
		t.Errorf("flowcell takes %v", next)
	}
}

// byHand is DRILL(d, m) as §3.2.2 says it, slow and plain, for one engine; it takes
// its random numbers in the same order.
type byHand struct {
	d, m   int
	memory []int
	pick   func(n int, before []int) int
}

func (b *byHand) choose(load []int) int {
	var seen []int
	var picked []int
	for range min(b.d, len(load)) {
		picked = append(picked, b.pick(len(load), picked))
	}
	seen = append(seen, picked...)
	for _, p := range b.memory {
		if !slices.Contains(seen, p) {
			seen = append(seen, p)
		}
	}
	slices.SortStableFunc(seen, func(x, y int) int { return load[x] - load[y] })
	b.memory = slices.Clone(seen[:min(b.m, len(seen))])
	return seen[0]
}

func TestDrill_matchesThePapersWords(t *testing.T) {
	const seed = 17
	topo := parse(t, "leaf-spine:leaves=2,spines=12,hosts=2,host-rate=10000,fabric-rate=10000")
	first := upPort(topo.Ports(4)[2].Link)
	for _, c := range [][2]int{{1, 1}, {2, 1}, {1, 2}, {12, 1}, {1, 12}, {20, 20}, {3, 4}} {
		q := queues{}
		config := SwitchConfig{Topology: topo, Name: switchDrill, Seed: seed, Samples: c[0], Memory: c[1]}
		s := newSwitch(t, config, q)
		other := newSwitch(t, config, q).(*drill) // for its random numbers only
		hand := byHand{d: c[0], m: c[1], pick: other.pick}
		rng := rand.New(rand.NewPCG(seed, 0))
		for step := range 3000 {
			load := make([]int, 12)
			for i := range load {
				if rng.IntN(3) == 0 {
					q[first+2*int32(i)] = rng.IntN(6) * 1500
				}
				load[i] = q[first+2*int32(i)]
			}
			got := s.Up(4, 0, &Packet{Src: 0, Dst: 2, Bytes: 1500}, time.Duration(step))
			if want := hand.choose(load); got != want {
				t.Fatalf("seed %d: DRILL(%d,%d), step %d: port %d of loads %v, want %d", seed, c[0], c[1], step, got, load, want)
			}
		}
	}
}

// What one engine has just sent is in the queue for itself, but not for another one
// until it would have been transferred.
func TestDrill_enginesDoNotSeeWhatIsEntering(t *testing.T) {
	topo := parse(t, leafSpine)
	q := queues{}
	s := newSwitch(t, SwitchConfig{Topology: topo, Name: switchDrill, Seed: 1, Samples: 4, Memory: 1, Engines: 2}, q)
	first := upPort(topo.Ports(16)[4].Link)
	for i := range 4 {
		q[first+2*int32(i)] = 3000
	}
	q[first+4] = 2000 // the shortest by less than a packet
	p := Packet{Src: 0, Dst: 12, Bytes: 1500}
	up := func(host int32, now time.Duration) int { return s.Up(16, 2*host, &p, now) }
	if got := up(0, 0); got != 2 {
		t.Fatalf("port %d", got)
	}
	q[first+4] += 1500
	if got := up(1, 100); got != 2 {
		t.Errorf("another engine takes %d as if it saw what is entering", got)
	}
	q[first+4] += 1500
	if got := up(2, 200); got == 2 {
		t.Error("an engine has forgotten what it sent itself")
	}
	q[first+4] = 3500
	if got := up(3, 3000); got == 2 { // 1,500 bytes take 1.2 µs
		t.Error("another engine never sees what has entered")
	}
}

func TestEntering_isARing(t *testing.T) {
	const seed = 2
	rng := rand.New(rand.NewPCG(seed, 0))
	var e entering
	var all []enterer
	for step := range 5000 {
		now := time.Duration(step)
		if rng.IntN(3) > 0 {
			x := enterer{now + time.Duration(rng.IntN(80)), int32(rng.IntN(1500)), uint8(rng.IntN(3))}
			e.add(x)
			all = append(all, x)
		}
		engine := rng.IntN(3)
		want := int32(0)
		for _, x := range all[max(0, len(all)-1<<enteringBits):] {
			if x.until > now && int(x.engine) != engine {
				want += x.bytes
			}
		}
		if got := e.hidden(engine, now); got != want {
			t.Fatalf("seed %d, step %d: %d bytes are hidden, want %d", seed, step, got, want)
		}
	}
}

func TestFlowTables_rememberAsAMapWould(t *testing.T) {
	s := shapeOf(parse(t, leafSpine))
	tables := newFlowTables(&s)
	const seed = 9
	rng := rand.New(rand.NewPCG(seed, 0))
	known := map[uint64]int16{}
	for step := range 20000 {
		hash := mix(seed, uint64(rng.IntN(100)))
		e, ok := tables.get(17, hash)
		port, want := known[hash]
		if ok != want || ok && e.port != port {
			t.Fatalf("seed %d: known %v, port %d; want %v, %d", seed, ok, e.port, want, port)
		}
		e.used, e.port = int64(step), int16(rng.IntN(4))
		known[hash] = e.port
	}
	// Far more than there is room for: the latest of them all is still known.
	last := uint64(0)
	for i := range 100000 {
		last = mix(77, uint64(i))
		e, _ := tables.get(17, last)
		e.used = int64(30000 + i)
	}
	if _, ok := tables.get(17, last); !ok {
		t.Error("the latest flow is forgotten")
	}
	if n := len(tables.of[1]); n != tables.sets*ways {
		t.Errorf("%d entries", n)
	}
}

func TestNewSwitch_errorsNameTheField(t *testing.T) {
	topo := parse(t, leafSpine)
	for want, c := range map[string]SwitchConfig{
		"Topology":      {Name: switchRB},
		"Name":          {Topology: topo, Name: "drb"},
		"Samples":       {Topology: topo, Name: switchDrill, Samples: 65},
		"Memory":        {Topology: topo, Name: switchDrill, Memory: -1},
		"Engines":       {Topology: topo, Name: switchDrill, Engines: 257},
		"FlowcellBytes": {Topology: topo, Name: switchLocal, FlowcellBytes: -1},
		"FlowletGap":    {Topology: topo, Name: switchConga, FlowletGap: 1},
		"Tau":           {Topology: topo, Name: switchConga, Tau: -1},
		"Expiry":        {Topology: topo, Name: switchLuopan, Expiry: 1},
	} {
		if _, err := NewSwitch(c, queues{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestSwitch_allocatesNothingPerPacket(t *testing.T) {
	for _, topo := range []string{"", "e0.0-a0.0"} {
		for _, name := range SwitchNames() {
			known := parse(t, leafSpine)
			if topo != "" {
				known = without(t, known, topo)
			}
			s := newSwitch(t, SwitchConfig{Topology: known, Name: name, Seed: 1, Engines: 4}, queues{})
			sh := shapeOf(known)
			now := time.Duration(0)
			p := Packet{Src: 4, Dst: 12, Hash: 5, Bytes: 1500}
			numbers := NewNumbers(p.Hash)
			one := func() {
				now += time.Microsecond
				p.Hash += 77
				p.Number, p.Numbered = numbers.Next(s.Unit(), 0, 1460, now), s.Unit().Numbers()
				port := int32(s.Up(17, 8, &p, now))
				s.Pass(upPort(sh.uplink(17))+2*port, &p, now)
				s.Pass(2*12+1, &p, now)
			}
			one()
			if n := testing.AllocsPerRun(500, one); n != 0 {
				t.Errorf("%s: %v allocations", name, n)
			}
		}
	}
}
