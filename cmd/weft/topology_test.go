package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTopology_fromContainerlab(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lab.clab.yml")
	text := "topology:\n  nodes: {leaf1: , leaf2: , spine1: , spine2: , h1: , h2: }\n  links:\n" +
		"    - endpoints: [\"leaf1:e1\", \"spine1:e1\"]\n    - endpoints: [\"leaf1:e2\", \"spine2:e1\"]\n" +
		"    - endpoints: [\"leaf2:e1\", \"spine1:e2\"]\n    - endpoints: [\"leaf2:e2\", \"spine2:e2\"]\n" +
		"    - endpoints: [\"h1:eth1\", \"leaf1:e3\"]\n    - endpoints: [\"h2:eth1\", \"leaf2:e3\"]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := mustWeft(t, "topology", "from-containerlab", file)
	for _, want := range []string{"# paths between racks: 2 to 2\n", "# guessed: tier 2 of spine1, spine2\n", "  spine1: {tier: 2, addresses: [172.17.0.1]}\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	graph := filepath.Join(t.TempDir(), "graph.yaml")
	if err := os.WriteFile(graph, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	again := mustWeft(t, "topology", "from-yaml", graph)
	_, first, _ := strings.Cut(out, "nodes:")
	if _, second, _ := strings.Cut(again, "nodes:"); first != second {
		t.Errorf("%s\nis read back as\n%s", out, again)
	}
}

func TestTopology_cutOff(t *testing.T) {
	file := filepath.Join(t.TempDir(), "graph.yaml")
	text := "nodes:\n  leaf1: {tier: 1, addresses: [172.16.0.1]}\n  leaf2: {tier: 1, addresses: [172.16.0.2]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := mustWeft(t, "topology", "from-yaml", file); !strings.Contains(out, "# no path from leaf1 to leaf2\n") {
		t.Error(out)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(text, "0.2", "0.1", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	wantError(t, "topology from-yaml "+file, ":3: node leaf2: leaf1 (line 2) has the address 172.16.0.1, too")
}
