package sim

import (
	"math"
	"runtime"
	"testing"
	"time"

	"weft/bench/sim/workload"
	"weft/topology"
)

// TestRun_oneFlow computes by hand: ten packets of 1,500 bytes at 1 Gbit/s take 12 µs
// each to leave the host, and the last one as long again at each further port, and
// 5 µs on each link.
func TestRun_oneFlow(t *testing.T) {
	for _, c := range []struct {
		dst   topology.NodeID
		links int
	}{{1, 2}, {2, 4}, {15, 6}} {
		config := drbSetting(parse(t, "fat-tree:k=4"+rates), "drb")
		config.Warmup = 0
		config.Workload = &list{flows: []workload.Flow{{Src: 0, Dst: c.dst, Bytes: 14_600, Start: time.Millisecond}}}
		var fct time.Duration
		config.OnFlow = func(e FlowEnd) { fct = e.FCT }
		r := run(t, config)
		want := 10*12*time.Microsecond + time.Duration(c.links-1)*12*time.Microsecond + time.Duration(c.links)*5*time.Microsecond
		if fct != want {
			t.Errorf("%d links: FCT %v, want %v", c.links, fct, want)
		}
		// An acknowledgement takes 320 ns a port.
		back := time.Duration(c.links) * (5320 * time.Nanosecond)
		if got := r.End; got != time.Millisecond+want+back {
			t.Errorf("%d links: ended at %v, want %v", c.links, got, time.Millisecond+want+back)
		}
		if r.DataPackets != 10 || r.AckPackets != 10 || r.PacketHops != uint64(20*c.links) {
			t.Errorf("%d links: %d data, %d acknowledgements, %d hops; want 10, 10, %d", c.links, r.DataPackets, r.AckPackets, r.PacketHops, 20*c.links)
		}
		// Entering the first switch to leaving the last: no queue on the way.
		least := time.Duration(c.links-1)*12*time.Microsecond + time.Duration(c.links-2)*5*time.Microsecond
		if got := r.Latency.Mean(); math.Abs(got/float64(least)-1) > 0.01 {
			t.Errorf("%d links: latency %v, want %v", c.links, time.Duration(got), least)
		}
	}
}

// TestRun_twoShare lets two hosts send to a third.
func TestRun_twoShare(t *testing.T) {
	c := drbSetting(parse(t, "leaf-spine:leaves=1,spines=1,hosts=3,host-rate=1000,fabric-rate=1000"), "drb")
	c.Warmup, c.Duration = 50*time.Millisecond, 350*time.Millisecond
	c.TCP.WindowBytes = 64 << 10
	c.Workload = &list{flows: []workload.Flow{{Src: 0, Dst: 2}, {Src: 1, Dst: 2}}}
	var first, last int64
	c.SampleEvery = 50 * time.Millisecond
	r := run(t, c)
	rate := float64(r.DeliveredBytes[2]) * 8 / 0.3
	if want := 1e9 * 1460 / 1500; math.Abs(rate/want-1) > 0.002 {
		t.Errorf("together %v Mbit/s, want %v", rate/1e6, want/1e6)
	}
	first, last = r.Ports[up(0)].Bytes, r.Ports[up(1)].Bytes
	if ratio := float64(first) / float64(last); ratio < 0.9 || ratio > 1.1 {
		t.Errorf("sent %d and %d bytes, want about as many", first, last)
	}
}

// TestTransmit_tailDrop fills a port of 4,500 bytes to the last one.
func TestTransmit_tailDrop(t *testing.T) {
	c := drbSetting(parse(t, "fat-tree:k=4"+rates), "drb")
	c.Queues = []Queue{{RateMbit: 1000, Bytes: 4500}, {Bytes: 1}}
	c.OpenLoop = &OpenLoop{Load: 1, PacketBytes: 1500}
	s, err := newSimulation(c)
	if err != nil {
		t.Fatal(err)
	}
	port := down(0)
	put := func(bytes int32) bool {
		n := s.packets.take()
		*s.packets.at(n) = packet{kind: open}
		return s.transmit(port, n, loadOf(bytes, 0), way{})
	}
	steps := []struct {
		at    int64 // ns
		bytes int32
		want  bool
		queue int
	}{
		{0, 3000, true, 3000},
		{0, 1501, false, 3000},
		{0, 1500, true, 4500},
		{0, 1, false, 4500},
		{7, 1, false, 4499}, // seven eighths of a byte have left
		{8, 1, true, 4500},
		{8, 1, false, 4500},
		{36_008, 4500, true, 4500},
	}
	for i, step := range steps {
		s.now = step.at * 1000
		if got := put(step.bytes); got != step.want {
			t.Errorf("step %d: put %v, want %v", i, got, step.want)
		}
		if got := s.queueBytes(port); got != step.queue {
			t.Errorf("step %d: %d bytes wait, want %d", i, got, step.queue)
		}
	}
	if got := s.ports[port].drops; got != 4 {
		t.Errorf("%d drops, want 4", got)
	}
}

// TestTransmit_mark marks what finds more than a threshold, of packets that may be.
func TestTransmit_mark(t *testing.T) {
	c := drbSetting(parse(t, "fat-tree:k=4"+rates), "drb")
	c.Queues = []Queue{{Bytes: 100_000, ECNBytes: 3000}}
	c.OpenLoop = &OpenLoop{Load: 1, PacketBytes: 1500}
	s, err := newSimulation(c)
	if err != nil {
		t.Fatal(err)
	}
	for i, flags := range []uint32{capable, capable, capable, capable, capable, 0} {
		s.transmit(down(0), uint32(i), loadOf(1500, flags), way{})
	}
	for i, want := range []uint32{0, 0, 0, marked, marked, 0} {
		if e, _ := s.wheel.pop(); e.load&marked != want {
			t.Errorf("packet %d: mark %d, want %d", i, e.load&marked, want)
		}
	}
}

// TestRun_conserves accounts for every packet, with drops, failures and probes.
func TestRun_conserves(t *testing.T) {
	for _, name := range everyPolicy() {
		topo := parse(t, "fat-tree:k=4,hosts=4"+rates)
		c := drbSetting(topo, name)
		c.Warmup, c.Duration = 0, 15*time.Millisecond
		c.Queues = []Queue{{Bytes: 20_000}}
		c.HostQueueBytes = 30_000
		c.Workload = permutation(topo, 7, 0)
		l := topology.LinkID(topo.NumHosts())
		c.Failures = []Failure{
			{At: 3 * time.Millisecond, Links: []topology.LinkID{l, l + 5, l + 20}, Told: 2 * time.Millisecond},
			{At: 9 * time.Millisecond, Links: []topology.LinkID{l, l + 20}, Up: true, Told: time.Millisecond},
		}
		s, err := newSimulation(c)
		if err != nil {
			t.Fatal(err)
		}
		s.run()
		r := s.result()
		under, last, lost, flows := 0, 0, 0, 0
		s.wheel.each(func(e *event) {
			switch {
			case !e.isPacket():
			case e.load&gone != 0:
				lost++
			default:
				if under++; e.load&kinds == arrived && e.way == (way{}) {
					last++
				}
			}
		})
		held := r.Resequencer.HeldPackets
		under += held
		for i := range s.flows.n {
			flows += int(s.flows.at(i).underWay)
		}
		drops := 0
		for _, p := range r.Ports {
			drops += int(p.Drops)
		}
		sent := int(r.DataPackets + r.AckPackets + r.ProbePackets)
		passed := int(r.Places[EdgeDown].Packets)
		if got := passed - last + drops + under - held; got != sent {
			t.Errorf("%s: %d packets sent; %d arrived, %d dropped, %d under way", name, sent, passed-last, drops, under-held)
		}
		if drops == 0 {
			t.Errorf("%s: no drops: this test tests nothing", name)
		}
		probes := len(s.probing.out) - len(s.probing.unused)
		if flows+probes != under+lost {
			t.Errorf("%s: flows know of %d packets under way and %d probes, there are %d", name, flows, probes, under+lost)
		}
	}
}

// TestRun_failure takes the only way away for a while.
func TestRun_failure(t *testing.T) {
	topo := parse(t, "leaf-spine:leaves=2,spines=2,hosts=2,host-rate=1000,fabric-rate=1000")
	first := topo.Ports(topo.Link(0).B)[2].Link
	config := func(told time.Duration) Config {
		c := drbSetting(topo, "drb")
		c.Warmup, c.Duration = 0, time.Second
		c.Workload = &list{flows: []workload.Flow{{Src: 0, Dst: 2, Bytes: 10_000_000}}}
		c.Failures = []Failure{{At: 20 * time.Millisecond, Links: []topology.LinkID{first}, Told: told}}
		return c
	}
	c := config(time.Millisecond)
	early, late := int64(-1), int64(-1)
	c.SampleEvery = 10 * time.Millisecond
	c.OnSample = func(now time.Duration, v View) {
		switch now {
		case 30 * time.Millisecond:
			early = v.SentBytes(int(up(int32(first))))
		case 60 * time.Millisecond:
			late = v.SentBytes(int(up(int32(first))))
		}
	}
	r := run(t, c)
	if r.Flows != 1 || r.DeliveredBytes[2] != 10_000_000 {
		t.Errorf("%d flows ended, %d bytes came; want all", r.Flows, r.DeliveredBytes[2])
	}
	if r.Ports[up(int32(first))].Drops == 0 || r.Retransmits == 0 {
		t.Error("nothing was lost with the link")
	}
	if early != late || early <= 0 {
		t.Errorf("%d bytes went by the dead link, and later %d; want as many, not 0", early, late)
	}
	if never := run(t, config(time.Hour)); never.Flows == 1 && never.End < r.End {
		t.Errorf("without being told it took %v, less than %v", never.End, r.End)
	}
}

// TestRun_allocatesNothing looks at the end of a run, when all pools are as large as they
// get: with reps, which needs ECN and has none here, packets are lost for 60 ms.
func TestRun_allocatesNothing(t *testing.T) {
	for _, name := range everyPolicy() {
		c := drbSetting(parse(t, "fat-tree:k=4"+rates), name)
		c.Workload = permutation(c.Topology, 7, 0)
		c.Duration, c.Warmup = 91*time.Millisecond, 75*time.Millisecond
		var before, after runtime.MemStats
		c.SampleEvery = 15 * time.Millisecond
		c.OnSample = func(now time.Duration, _ View) {
			if now == 75*time.Millisecond {
				runtime.ReadMemStats(&before)
			} else {
				runtime.ReadMemStats(&after)
			}
		}
		r := run(t, c)
		if n := after.Mallocs - before.Mallocs; n > r.DataPackets/1000 {
			t.Errorf("%s: %d allocations for %d packets", name, n, r.DataPackets)
		}
	}
}

// TestRun_large has every host of the largest fabric in the papers' reach send a
// little.
func TestRun_large(t *testing.T) {
	if testing.Short() {
		t.Skip("27,648 hosts")
	}
	c := drbSetting(parse(t, "fat-tree:k=48"+rates), "drb")
	c.Warmup = 0
	c.Workload = permutation(c.Topology, 1, 3000)
	r := run(t, c)
	if hosts := c.Topology.NumHosts(); int(r.Flows) != hosts || r.DataPackets != uint64(3*hosts) {
		t.Errorf("%d flows ended, %d packets; want %d and %d", r.Flows, r.DataPackets, hosts, 3*hosts)
	}
}
