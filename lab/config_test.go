package lab

import (
	"strings"
	"testing"
	"time"

	"weft/fabric"
	"weft/internal/kernel/kerneltest"
	"weft/topology"
	"weft/topology/graph"
	"weft/topology/graph/operator"
)

func TestLabConfig_bad(t *testing.T) {
	top := kerneltest.Topology(t, "fat-tree:k=4")
	g, err := graph.New(operator.Spec(kerneltest.Topology(t, "leaf-spine:leaves=2,spines=2,hosts=1"), 1))
	if err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]Config{
		"name":          {Name: "a-b", Topology: top},
		"Topology":      {},
		"nodes":         {Topology: kerneltest.Topology(t, "fat-tree:k=64")},
		"rate":          {Topology: top, RateMbit: -1},
		"MTU":           {Topology: top, MTU: 100},
		"burst":         {Topology: top, BurstBytes: 1500},
		"queue":         {Topology: top, QueueBytes: 10},
		"super-segment": {Topology: top, GSOMaxBytes: 1},
		"unlimited":     {Topology: top, Unlimited: true, RateMbit: 20},
		"node 99":       {Topology: top, Only: []topology.NodeID{99}},
		"switch e0.0":   {Topology: top, Only: []topology.NodeID{0}},
		"MTU 100":       {Topology: top, Unlimited: true, MTU: 100},
		"no rule":       {Topology: top, Balance: "spray"},
		"with a mark":   {Topology: top, Balance: "drb", Routing: "two-level"},
		"run FRR":       {Graph: g, Balance: "drb"},
	} {
		if _, err := c.complete(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
	for one, other := range map[string]string{"": "ecmp", "routes": "ecmp", "drill": "drill:m=1,d=2", "letflow:gap=1000us": "letflow:gap=1ms",
		"classifier": "classifier:moves=3"} {
		a, err := Config{Topology: top, Balance: one}.complete()
		b, err2 := Config{Topology: top, Balance: other}.complete()
		if a.settings() != b.settings() || err != nil || err2 != nil {
			t.Errorf("%q is %q, and %q is %q: %v, %v", one, a.Balance, other, b.Balance, err, err2)
		}
	}
	slow := kerneltest.Topology(t, "fat-tree:k=4,host-rate=20,fabric-rate=20,core-rate=0.01")
	if _, err := (Config{Topology: slow}).complete(); err == nil || !strings.Contains(err.Error(), "link a0.2-c1.1: rate 0.01") {
		t.Errorf("a rate of the topology's: error %v", err)
	}
	c, err := Config{Topology: top}.complete()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.settings(), (labSettings{Topology: "fat-tree:k=4", RateMbit: 20, QueueBytes: 75000, BurstBytes: 3200, MTU: 1500}); c.Name != "lab" || got != want {
		t.Errorf("defaults are %s: %+v", c.Name, got)
	}
	if c, err = (Config{Topology: top, Unlimited: true}).complete(); err != nil {
		t.Fatal(err)
	}
	if got, want := c.settings(), (labSettings{Topology: "fat-tree:k=4", Unlimited: true, MTU: 1500}); got != want {
		t.Errorf("defaults of an unlimited lab are %+v", got)
	}
	if back, err := c.settings().config(c.Name); err != nil || back.settings() != c.settings() || !back.Unlimited {
		t.Errorf("read back: %+v, %v", back, err)
	}
}

// Lengths in bytes are in proportion to a port's rate, as its queue is; times are the same.
func TestMeter_lengthsInProportion(t *testing.T) {
	c, err := Config{Topology: kerneltest.Topology(t, "fat-tree:k=4"), RateMbit: 20}.complete()
	if err != nil {
		t.Fatal(err)
	}
	m := Meter{ECNBytes: 20_000, RED: fabric.RED{Min: fabric.QueueLength{Bytes: 10_000}, Max: fabric.QueueLength{Time: time.Millisecond}}}
	if p := m.port(c, "p0", 10); p.ECNBytes != 10_000 || p.RED.Min.Bytes != 5_000 || p.RED.Max != m.RED.Max {
		t.Errorf("%+v", p)
	}
	m.RED.Max = fabric.QueueLength{Bytes: 30_000}
	if p := m.port(c, "p0", 40); p.RED.Min.Bytes != 20_000 || p.RED.Max.Bytes != 60_000 {
		t.Errorf("%+v", p)
	}
}

// A lab remembers the rates of its links, which its topology says, and gives
// each port a queue in proportion.
func TestLabConfig_ratesOfLinks(t *testing.T) {
	spec := "fat-tree:k=4,host-rate=10,fabric-rate=20,core-rate=40,e0.0-a0.2=5"
	top := kerneltest.Topology(t, spec)
	c, err := Config{Topology: top.Without(20), RateMbit: 20, QueueBytes: 100_000}.complete()
	if err != nil {
		t.Fatal(err)
	}
	if c.Topology.Down() != nil {
		t.Error("links that are down are not built")
	}
	back, err := c.settings().config(c.Name)
	if err != nil {
		t.Fatal(err)
	}
	if back, err = back.complete(); err != nil || back.settings() != c.settings() {
		t.Errorf("read back: %+v, %v", back.settings(), err)
	}
	for name, want := range map[string]struct {
		mbit  float64
		queue int
	}{
		"h0.0.2-e0.0": {10, 50_000},
		"e0.0-a0.2":   {5, 25_000},
		"e0.0-a0.3":   {20, 100_000},
		"a0.2-3.0":    {40, 200_000},
	} {
		l, err := back.Topology.LinkByName(name)
		if err != nil {
			t.Fatal(err)
		}
		mbit := back.linkRate(l.ID)
		if queue := back.queueBytes(mbit); mbit != want.mbit || queue != want.queue {
			t.Errorf("%s: %g Mbit/s and a queue of %d, want %+v", name, mbit, queue, want)
		}
	}
	if got, want := back.queueBytes(0.1), 1514; got != want {
		t.Errorf("queue of a slow port is %d, want one packet of %d", got, want)
	}
}
