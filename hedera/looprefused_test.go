package hedera

import (
	"math/rand/v2"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"weft/flowcell"
	"weft/topology"
)

func TestLoop_refusals(t *testing.T) {
	f := fabricOf(t, kinds[0])
	l := newLoop(t, f, "first-fit", 2)
	host := func(h topology.NodeID) netip.Addr { return f.t.Node(h).Addr }
	edge := f.t.Node(f.t.EdgeOf(0)).Addr
	core := f.t.Node(f.t.Paths(0, 15).Bounce(0)).Addr
	nobody := tupleOf(f, 0, 15, 1)
	nobody.Dst = flowcell.AddressFrom(netip.MustParseAddr("192.0.2.1"))
	six := tupleOf(f, 0, 15, 6)
	six.Src, six.Dst = flowcell.AddressFrom(topology.Addr6(host(0))), flowcell.AddressFrom(topology.Addr6(host(15)))
	for i, c := range []struct {
		node  netip.Addr
		tuple flowcell.FiveTuple
		rate  uint64
		want  error
	}{
		{host(0), tupleOf(f, 0, 15, 1), gigabit / 5, nil},
		{edge, six, gigabit / 4, nil}, // full now
		{host(1), tupleOf(f, 0, 15, 2), gigabit, RefusedNode},
		{core, tupleOf(f, 0, 15, 2), gigabit, RefusedNode},
		{netip.MustParseAddr("192.0.2.9"), tupleOf(f, 0, 15, 2), gigabit, RefusedNode},
		{host(0), nobody, gigabit, RefusedEnds},
		{host(0), tupleOf(f, 0, 0, 1), gigabit, RefusedEnds},
		{host(0), tupleOf(f, 0, 1, 1), gigabit / 2, RefusedLocal},
		{host(0), tupleOf(f, 0, 15, 2), 2 * gigabit, RefusedRate},
		{host(0), tupleOf(f, 0, 15, 2), gigabit / 11, RefusedSmall},
		{host(0), tupleOf(f, 0, 15, 2), gigabit / 8, RefusedFull},
		{host(0), tupleOf(f, 0, 15, 3), gigabit, RefusedRate}, // with the others more than the link
		{host(0), tupleOf(f, 0, 15, 3), gigabit / 2, nil},     // in the place of the smallest
	} {
		if err := l.Report(c.node, c.tuple, c.rate, 0); err != c.want {
			t.Errorf("%d: %v, want %v", i, err, c.want)
		}
	}
	r := l.Round(0)
	if len(r.Placed) != 2 || r.Placed[0].Tuple != six || r.Placed[1].Tuple.SrcPort != 3 {
		t.Errorf("placed %v, want the two largest", r.Placed)
	}
	if got := l.Refused(); got[RefusedFull] != 2 || got[RefusedNode] != 3 {
		t.Errorf("counted %v", got.ByName())
	}
}

// A host that reports as much as it can, of whatever size, leaves other hosts' flows alone: neither
// by its share of the table nor by its link can it have more.
func TestLoop_oneHostEmptiesNoTable(t *testing.T) {
	f := fabricOf(t, kinds[0])
	const most = 160 // ten a host
	l, err := NewLoop(LoopConfig{Fabric: f, Rule: "first-fit", MaxFlows: most, Threshold: 1e-6, Forget: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for h := topology.NodeID(1); h < 16; h++ {
		for n := range 10 {
			if err := l.Report(f.t.Node(h).Addr, tupleOf(f, h, (h+8)%16, n), gigabit/20, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	flood := func(rate uint64, now time.Duration) {
		for n := range 5000 {
			l.Report(f.t.Node(0).Addr, tupleOf(f, 0, 8, n), rate+uint64(n), now)
		}
	}
	for _, rate := range []uint64{gigabit / 1000, gigabit / 15, gigabit / 2, gigabit} {
		flood(rate, 0)
		flood(rate, 2*time.Second)
	}
	others, own, sum := 0, 0, uint64(0)
	for _, e := range l.table.by {
		if e.Src == 0 {
			own++
			sum += e.rate
		} else {
			others++
		}
	}
	if others != 150 || own > 10 || sum > gigabit*5/4 || sum != l.table.hosts[0].rate {
		t.Errorf("%d flows of others, want 150; %d of the host's with %d bit/s, counted %d", others, own, sum, l.table.hosts[0].rate)
	}
	// A host whose flows have ended has its link for others: it need not wait till all are forgotten.
	if err := l.Report(f.t.Node(0).Addr, tupleOf(f, 0, 8, 9999), gigabit, 4*time.Second); err != nil {
		t.Errorf("the flow after those that have ended: %v", err)
	}
	// An empty table is not for one host either.
	l = newLoop(t, f, "first-fit", 0)
	l.c.Threshold = 1e-6
	if flood(gigabit/100_000, 0); l.Flows() != mostOfHost {
		t.Errorf("one host has %d flows, want %d", l.Flows(), mostOfHost)
	}
}

// A flow that its host and its edge switch report has a placement at one of them. When that one
// reports it no more the other one gets the placement, and the first one loses it.
func TestLoop_twoReporters(t *testing.T) {
	f := fabricOf(t, kinds[0])
	l := newLoop(t, f, "first-fit", 0)
	tuple, host, edge := tupleOf(f, 0, 8, 1), f.t.Node(0).Addr, f.t.Node(f.t.EdgeOf(0)).Addr
	report := func(node netip.Addr, at time.Duration) {
		if err := l.Report(node, tuple, gigabit, at); err != nil {
			t.Fatal(err)
		}
	}
	for at := range time.Duration(4) {
		report(host, at*time.Second)
		report(edge, at*time.Second)
		r := l.Round(at * time.Second)
		if len(r.Placed) != 1 || r.Placed[0].Node != host || len(r.Changed) > 0 != (at == 0) || len(r.Ended) > 0 {
			t.Fatalf("round %d: %+v", at, r)
		}
	}
	report(edge, 5*time.Second)
	r := l.Round(5 * time.Second)
	if len(r.Changed) != 1 || r.Changed[0].Node != edge || len(r.Ended) != 1 || r.Ended[0].Node != host {
		t.Errorf("the host reports no more: %+v", r)
	}
}

// A million flows in a second: the table keeps the largest, and memory does not grow.
func TestLoop_aMillionFlowsASecond(t *testing.T) {
	n := 1_000_000
	if testing.Short() {
		n = 100_000
	}
	f := fabricOf(t, "fat-tree:k=8,host-rate=1000,fabric-rate=1000,core-rate=1000")
	const most = 4096
	l := newLoop(t, f, "first-fit", most)
	l.c.Threshold = 1e-4 // so that many fit into a host's link
	rng := rand.New(rand.NewPCG(1, 1))
	report := func(n int) {
		for i := range n {
			src := topology.NodeID(i % 128)
			tuple := tupleOf(f, src, (src+64)%128, rng.IntN(1<<16))
			tuple.DstPort = uint16(rng.Uint32())
			l.Report(f.t.Node(src).Addr, tuple, uint64(gigabit/1000+rng.IntN(gigabit/50)), time.Duration(i)*time.Second/time.Duration(n))
		}
	}
	report(4 * most)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	report(n)
	largest := tupleOf(f, 3, 67, 1)
	if err := l.Report(f.t.Node(3).Addr, largest, gigabit/4, time.Second); err != nil {
		t.Errorf("the largest flow: %v", err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if l.Flows() != most {
		t.Errorf("%d flows are known, want %d", l.Flows(), most)
	}
	if l.table.get(largest) == nil || l.table.small[0].rate < gigabit*18/1000 {
		t.Errorf("the smallest that is kept has %d bit/s: not the largest are kept", l.table.small[0].rate)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	if got := l.Refused()[RefusedFull]; got < uint64(n) {
		t.Errorf("%d were refused, want %d or more", got, n)
	}
}
