package fabric

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/internal/kernel/kerneltest"
	"weft/topology"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func mustPlan(t testing.TB, top *topology.Topology, node string) NodePlan {
	t.Helper()
	n, err := top.Lookup(node)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Plan(top, n.ID, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPlan_golden(t *testing.T) {
	for file, n := range map[string]struct{ spec, node string }{
		"host":      {"fat-tree:k=4", "h0.0.2"},
		"edge":      {"fat-tree:k=4", "e1.0"},
		"agg":       {"fat-tree:k=4", "a2.2"},
		"core":      {"fat-tree:k=4", "3.0"},
		"vl2-spine": {"vl2:d0=2,d1=4,d2=4,hosts=2", "3.1"},
		"leaf":      {"leaf-spine:leaves=3,spines=2,hosts=1", "e0.1"},
	} {
		p := mustPlan(t, kerneltest.Topology(t, n.spec), n.node)
		b, err := json.MarshalIndent(p, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		golden(t, file+".json", string(b)+"\n")
		golden(t, file+".sh", strings.Join(p.Commands(), "\n")+"\n")
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update rewrites it); got:\n%s", path, got)
	}
}

// Every hop must be the neighbour at the other end of the port's cable, or the
// route leads nowhere.
func TestPlan_hopsAreNeighbours(t *testing.T) {
	top := kerneltest.Topology(t, "fat-tree:k=6")
	seeds := make(map[string]string)
	for n := range top.Nodes() {
		p, err := Plan(top, n.ID, Options{PortFormat: "swp%d"})
		if err != nil {
			t.Fatal(err)
		}
		peers := make(map[Hop]bool)
		for _, port := range p.Ports {
			if !strings.HasPrefix(port.Name, "swp") {
				t.Fatalf("%s: port %s ignores the format", n.Name, port.Name)
			}
			peers[Hop{port.PeerAddr, port.Name}] = true
		}
		for _, r := range p.Routes {
			for _, hop := range r.Via {
				if !peers[hop] {
					t.Errorf("%s: route to %s by %v, which is no neighbour", n.Name, r.Prefix, hop)
				}
			}
		}
		for _, s := range p.Sysctls {
			if s.Key != "net.ipv4.fib_multipath_hash_seed" {
				continue
			}
			if other, taken := seeds[s.Value]; taken || s.Value == "0" {
				t.Errorf("%s has hash seed %s, and so has %s", n.Name, s.Value, other)
			}
			seeds[s.Value] = n.Name
		}
		bounces := n.Layer == topology.LayerAgg || n.Layer == topology.LayerCore
		if bounces != (len(p.Bouncing) == 1) {
			t.Errorf("%s: bouncing addresses %v", n.Name, p.Bouncing)
		}
	}
	if want := top.NumNodes() - top.NumHosts(); len(seeds) != want {
		t.Errorf("%d switches have a hash seed, want %d", len(seeds), want)
	}
}

func TestPlan_avoidsDownLinks(t *testing.T) {
	top := kerneltest.Topology(t, "fat-tree:k=4")
	core, _ := top.Lookup("3.0")
	agg := mustPlan(t, top.WithoutNode(core.ID), "a2.2")
	for _, r := range agg.Routes {
		for _, hop := range r.Via {
			if hop.Addr == core.Addr {
				t.Errorf("route to %s goes by the dead core", r.Prefix)
			}
		}
	}
}

func TestPlan_badPortFormat(t *testing.T) {
	top := kerneltest.Topology(t, "fat-tree:k=4")
	for _, format := range []string{"swp", "%d%d", "%s", "p%d;reboot", "eth1.%d", "a/%d", "averylongnames%d"} {
		if _, err := Plan(top, 0, Options{PortFormat: format}); err == nil || !strings.Contains(err.Error(), "port format") {
			t.Errorf("format %q: error %v", format, err)
		}
	}
	if _, err := Plan(top, 99, Options{}); err == nil {
		t.Error("node 99 of 36: no error")
	}
}

func TestLabConfig_bad(t *testing.T) {
	top := kerneltest.Topology(t, "fat-tree:k=4")
	for want, c := range map[string]LabConfig{
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
	} {
		if _, err := c.complete(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
	slow := kerneltest.Topology(t, "fat-tree:k=4,host-rate=20,fabric-rate=20,core-rate=0.01")
	if _, err := (LabConfig{Topology: slow}).complete(); err == nil || !strings.Contains(err.Error(), "link a0.2-c1.1: rate 0.01") {
		t.Errorf("a rate of the topology's: error %v", err)
	}
	c, err := LabConfig{Topology: top}.complete()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.settings(), (labSettings{Topology: "fat-tree:k=4", RateMbit: 20, QueueBytes: 75000, BurstBytes: 3200, MTU: 1500}); c.Name != "lab" || got != want {
		t.Errorf("defaults are %s: %+v", c.Name, got)
	}
	if c, err = (LabConfig{Topology: top, Unlimited: true}).complete(); err != nil {
		t.Fatal(err)
	}
	if got, want := c.settings(), (labSettings{Topology: "fat-tree:k=4", Unlimited: true, MTU: 1500}); got != want {
		t.Errorf("defaults of an unlimited lab are %+v", got)
	}
	if back, err := c.settings().config(c.Name); err != nil || back.settings() != c.settings() || !back.Unlimited {
		t.Errorf("read back: %+v, %v", back, err)
	}
}

// A lab remembers the rates of its links, which its topology says, and gives
// each port a queue in proportion.
func TestLabConfig_ratesOfLinks(t *testing.T) {
	spec := "fat-tree:k=4,host-rate=10,fabric-rate=20,core-rate=40,e0.0-a0.2=5"
	top := kerneltest.Topology(t, spec)
	c, err := LabConfig{Topology: top.Without(20), RateMbit: 20, QueueBytes: 100_000}.complete()
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
