package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weft/internal/slowtest"
	"weft/lab"
	"weft/topology/graph"
)

// What weft plan prints for FRR is what FRR's own frr-reload.py finds running in a lab of the
// same fabric: it would change nothing, but for what FRR does not print since it is its default.
func TestPlan_frrReloadChangesNothing(t *testing.T) {
	slowtest.Unraced(t)
	const reload = "/usr/lib/frr/frr-reload.py"
	if _, err := os.Stat(reload); err != nil {
		t.Skipf("needs Debian's package frr-pythontools: %v", err)
	}
	l := upBGPLab(t, "fat-tree:k=2")
	fabric, err := lab.Open(l.name)
	if err != nil {
		t.Fatal(err)
	}
	defer fabric.Close()
	file := filepath.Join(l.dir, "graph.yaml")
	if err := os.WriteFile(file, fabric.Config.Graph.Text(), 0o644); err != nil {
		t.Fatal(err)
	}
	// vtysh complains of a vtysh.conf that it may not read, as root's is.
	if err := os.WriteFile(filepath.Join(l.dir, "vtysh.conf"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	differs := func(name, config string) (changes []string) {
		file := filepath.Join(l.dir, name+".conf")
		if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(reload, "--test", "--stdout", "--vty_socket", filepath.Join("/run/weft", l.name+".frr", name),
			"--rundir", l.dir, "--confdir", l.dir, file).Output()
		if err != nil || !strings.Contains(string(out), "Lines To") {
			t.Fatalf("frr-reload.py of %s: %v\n%s", name, err, out)
		}
		for line := range strings.Lines(string(out)) {
			line = strings.TrimSpace(line)
			words := strings.Fields(line)
			switch {
			case len(words) == 0 || strings.HasPrefix(line, "Lines To") || strings.HasPrefix(line, "==="):
			case words[0] == "router" || strings.HasPrefix(line, "address-family") || strings.HasPrefix(line, "no hostname"): // where a change is; the machine's name
			case len(words) == 3 && words[0] == "neighbor" && words[2] == "activate": // FRR's default of IPv4
			default:
				changes = append(changes, line)
			}
		}
		return changes
	}
	g := fabric.Config.Graph
	for id := g.NumHosts(); id < g.NumNodes(); id++ {
		n := g.Node(graph.NodeID(id))
		plan := mustWeft(t, "plan", "--for", "frr", "--topology", file, "--node", n.Name)
		if changes := differs(n.Name, plan); len(changes) > 0 {
			t.Errorf("frr-reload.py would change %s:\n%s", n.Name, strings.Join(changes, "\n"))
		}
		if changes := differs(n.Name, strings.Replace(plan, "maximum-paths 64", "maximum-paths 63", 1)); len(changes) == 0 {
			t.Errorf("frr-reload.py finds nothing that differs at %s", n.Name)
		}
	}
}
