package lab

import (
	"testing"
	"time"

	"weft/internal/frr"
	"weft/internal/kernel/kerneltest"
	"weft/topology/graph"
	"weft/topology/graph/operator"
)

// operators returns a computed fabric with an operator's addresses.
func operators(t testing.TB, spec string, seed uint64) *graph.Graph {
	t.Helper()
	if err := frr.Available(); err != nil {
		t.Skip(err)
	}
	g, err := graph.New(operator.Spec(kerneltest.Topology(t, spec), seed))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGraph_up(t *testing.T) {
	start := time.Now()
	l := upLab(t, Config{Name: kerneltest.LabName("a"), Graph: operators(t, "leaf-spine:leaves=2,spines=2,hosts=1", 1)})
	t.Logf("up in %v, notes %q", time.Since(start), l.Notes)
	for n := range l.Config.nodes() {
		l.Do(n.ID, func() error {
			t.Logf("%s\n%s", n.Name, kerneltest.Shell(t, l.Namespace(n.ID), "ip -br a; ip r; ip -6 r; ip neigh"))
			return nil
		})
	}
	b, err := l.ShowRouting(2, "show bgp summary", "show running-config")
	t.Logf("%s %v", b, err)
	h := l.Config.Graph.Node(1)
	for _, a := range h.Addresses {
		t.Logf("%s", kerneltest.Shell(t, l.Namespace(0), "ping -c 3 -i 0.1 "+a.String()))
	}
}
