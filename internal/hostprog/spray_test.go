package hostprog

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/drb"
	"weft/encap"
	"weft/flowcell"
	"weft/internal/kernel/kerneltest"
	"weft/policy"
)

func TestChoiceOf_everyPolicy(t *testing.T) {
	want := map[string]choice{
		"ecmp": {sprayByHash, 0}, "rb": {sprayRandom, 0}, "rrb": {sprayByNumber, 0}, "drb": {sprayByNumber, 0},
		"presto": {sprayByNumber, 6}, "flowcell-drb": {sprayByNumber, 6}, "auto": {sprayByNumber, 6},
		"rand": {sprayDrawn, 6}, "luopan": {sprayDrawn, 6}, "letflow": {sprayFlowlets, 0}, "conga": {sprayInformed, 0},
	}
	for _, name := range policy.Names() {
		p, err := policy.New(name, policy.Options{FlowcellBytes: 2000, FlowletGap: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		w, ok := want[name]
		if got, err := choiceOf(p); got != w || (err == nil) != ok {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, w)
		}
	}
	auto, _ := policy.New("auto", policy.Options{})
	if got, err := choiceOf(auto.At(100e6)); got != want["drb"] || err != nil {
		t.Errorf("auto at 100 Mbit/s: %+v, %v; want %+v", got, err, want["drb"])
	}
	for _, p := range []policy.Policy{
		{Name: "other", Unit: flowcell.Unit{Kind: flowcell.UnitFlow}, Rule: drb.Random},
		{Name: "other", Unit: flowcell.Unit{Kind: flowcell.UnitFlowcell}, Rule: drb.Random, Aware: policy.Informed},
		{Name: "other", Unit: flowcell.Unit{Kind: flowcell.UnitPacket}, Rule: drb.Random, Aware: policy.Sampled},
		{Name: "other", Unit: flowcell.Unit{Kind: flowcell.UnitPacket}, Rule: drb.Hash},
	} {
		if _, err := choiceOf(p); err == nil || !strings.Contains(err.Error(), "policy other") {
			t.Errorf("%v: %v", p, err)
		}
	}
}

// The shift leaves the flowcell's number of what flowcell writes into the ID.
func TestChoiceOf_shiftIsFlowcells(t *testing.T) {
	for _, n := range []flowcell.Number{flowcell.MakeNumber(0, flowcell.MaxIndex), flowcell.MakeNumber(1023, 0), flowcell.MakeNumber(5, 17)} {
		if uint16(n)>>flowcellShift != n.Cell() {
			t.Errorf("%#x: cell %d, want %d", uint16(n), uint16(n)>>flowcellShift, n.Cell())
		}
	}
}

// Every host finds in the table what the topology says of its paths.
func TestSprayTable_isTheTopologys(t *testing.T) {
	top := kerneltest.Topology(t, "fat-tree:k=6")
	down := top.Without(top.Link(60).ID, top.Link(100).ID, top.Link(101).ID, top.Link(130).ID)
	for _, name := range []string{"drb", "rrb", "ecmp"} {
		p, _ := policy.New(name, policy.Options{})
		for self := range top.Hosts() {
			table, err := newSprayTable(down, self.ID, p, encap.CarrierIPIP)
			if err != nil {
				t.Fatal(err)
			}
			for host := range down.Hosts() {
				paths := down.PathsOrAll(self.ID, host.ID)
				g, ok := table.way(host.Addr)
				if embedded, _ := table.way(top.EmbeddedAddr(host.ID)); embedded.sprayGroup != g.sprayGroup {
					t.Fatalf("%s: the embedded stack's address is elsewhere", host.Name)
				}
				if ok == paths.Direct() {
					t.Fatalf("%s to %s: direct is %v", self.Name, host.Name, paths.Direct())
				}
				if !ok {
					continue
				}
				want := p.Rule.Order(paths.Bases, paths.Live)
				if len(g.order) != len(want) {
					t.Fatalf("%s to %s: %d paths, want %d", self.Name, host.Name, len(g.order), len(want))
				}
				for i, n := range want {
					if netip.AddrFrom4(g.order[i]) != paths.Addr(n) {
						t.Fatalf("%s to %s: step %d is %v, want %v", self.Name, host.Name, i, g.order[i], paths.Addr(n))
					}
				}
			}
		}
	}
}

// The largest fabric fits, and racks with the same paths share them.
func TestSprayTable_largest(t *testing.T) {
	top := kerneltest.Topology(t, "fat-tree:k=64")
	p, _ := policy.New("drb", policy.Options{})
	for _, c := range []encap.Carrier{encap.CarrierIPIP, encap.CarrierSRv6} {
		table, err := newSprayTable(top, 0, p, c)
		if err != nil {
			t.Fatal(err)
		}
		if len(table) != 64*32-1 {
			t.Errorf("%v: %d racks, want all but the own of 2048", c, len(table))
		}
		groups := make(map[*sprayGroup]bool)
		for _, w := range table {
			groups[w.sprayGroup] = true
		}
		if len(groups) != 2 {
			t.Errorf("%v: %d groups, want 2: the own pod and the others", c, len(groups))
		}
		racks, err := racksOf(top, 0, c)
		if bounces := bouncesOf(racks); err != nil || len(bounces) != 1024+32 {
			t.Errorf("%v: %d bouncing switches, want 1024 cores and 32 of the pod; %v", c, len(bounces), err)
		}
	}
}

// The counters have room for paths that are dead at first.
func TestBouncesOf_deadPathsToo(t *testing.T) {
	top := kerneltest.Topology(t, "fat-tree:k=4")
	core, _ := top.Lookup("3.2")
	for _, c := range []encap.Carrier{encap.CarrierIPIP, encap.CarrierSRv6} {
		racks, err := racksOf(top.WithoutNode(core.ID), 0, c)
		bounces := slices.Collect(maps.Values(bouncesOf(racks)))
		if err != nil || len(bounces) != 4+2 || !slices.Contains(bounces, core.Addr) {
			t.Errorf("%v: %v, %v; want 4 cores and 2 switches of the pod", c, bounces, err)
		}
	}
}

// Packets of the kernel's are what the oracle must spread: over all paths, and
// the IDs of one flow over neighbouring steps.
func TestSprayOracle_spreadsFlows(t *testing.T) {
	top := kerneltest.Topology(t, "fat-tree:k=8")
	p, _ := policy.New("drb", policy.Options{})
	table, err := newSprayTable(top, 0, p, encap.CarrierIPIP)
	if err != nil {
		t.Fatal(err)
	}
	dst := top.Node(127).Addr
	g, _ := table.way(dst)
	counts := make([]int, len(g.order))
	const flows = 4096
	for i := range uint16(flows) {
		h := kerneltest.IPv4{Frag: 0x4000, Protocol: 6, Src: top.Node(0).Addr, Dst: dst}
		b := h.Bytes([]byte{byte(i >> 8), byte(i), 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 0, 0, 0, 0, 0, 0})
		first := g.step(b)
		counts[first]++
		b[5] = 1
		if next := g.step(b); next != (first+1)%len(g.order) {
			t.Fatalf("flow %d: step %d behind %d", i, next, first)
		}
	}
	for step, n := range counts {
		// Six standard deviations of a binomial with 1 in 16.
		if want := flows / len(g.order); n < want-93 || n > want+93 {
			t.Errorf("step %d begins %d flows of %d", step, n, flows)
		}
	}
}
