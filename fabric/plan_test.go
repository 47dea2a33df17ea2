package fabric

import (
	"encoding/json"
	"strings"
	"testing"

	"weft/internal/golden"
	"weft/internal/kernel/kerneltest"
	"weft/topology"
)

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

// weightedSpec has routes with weights: a leaf with a slower link.
const weightedSpec = "leaf-spine:leaves=3,spines=2,hosts=1,fabric-rate=20,e0.0-a0.1=10"

func TestPlan_golden(t *testing.T) {
	for file, n := range map[string]struct{ spec, node string }{
		"host":      {"fat-tree:k=4", "h0.0.2"},
		"edge":      {"fat-tree:k=4", "e1.0"},
		"agg":       {"fat-tree:k=4", "a2.2"},
		"core":      {"fat-tree:k=4", "3.0"},
		"vl2-spine": {"vl2:d0=2,d1=4,d2=4,hosts=2", "3.1"},
		"leaf":      {"leaf-spine:leaves=3,spines=2,hosts=1", "e0.1"},
		"weights":   {weightedSpec, "e0.1"},
	} {
		p := mustPlan(t, kerneltest.Topology(t, n.spec), n.node)
		b, err := json.MarshalIndent(p, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, file+".json", string(b)+"\n")
		golden.Check(t, file+".sh", strings.Join(p.Commands(), "\n")+"\n")
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
			peers[Hop{Addr: port.PeerAddr, Port: port.Name}] = true
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
