package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/internal/frr"
	"weft/lab"
)

func TestLabGraph_bad(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "graph.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(frrGraph)
	wantError(t, "lab up --routing ospf", "--routing ospf", "static, two-level or bgp")
	wantError(t, "lab up --routing static --topology "+file, "is a graph", "leave --routing out")
	wantError(t, "lab up --uplinks 2", "--uplinks", "add --routing bgp")
	wantError(t, "lab up --planes 0 --routing bgp", "--planes 0", "at least")
	wantError(t, "lab up --planes 3 --routing bgp --topology "+file, "--planes", "is a graph")
	wantError(t, "lab up --uplinks 3 --routing bgp --topology leaf-spine:leaves=4,spines=2,hosts=1", "--uplinks", "left over")
	wantError(t, "lab up --encap srv6 --topology "+file, "SRv6 is for a Topology")
	wantError(t, "lab up --bfd", "BFD is for the switches of a Graph")
	wantError(t, "lab up --topology "+filepath.Join(dir, "none.yaml"), "no such file")
	wantError(t, "lab export --name nosuchlab", "--containerlab is missing")
	write(strings.Replace(frrGraph, "[h1, l1]", "[h1, l9]", 1))
	wantError(t, "lab up --topology "+file, file, "no node \"l9\"")
	write(strings.Replace(frrGraph, "[h1, l1]}", "[h1, l1], ports: [lo, x]}", 1))
	wantError(t, "lab up --topology "+file, "port lo of h1")
	write(strings.Replace(frrGraph, "[h1, l1]}", "[h1, l1], ports: [eth1, ethernet-1/1]}", 1))
	wantError(t, "lab up --topology "+file, "port ethernet-1/1 of l1")
}

// A lab with an operator's addresses comes up from a file that was exported of it, as it was.
func TestLabGraph(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if err := frr.Available(); err != nil {
		t.Skip(err)
	}
	name := fmt.Sprintf("t%dx", os.Getpid())
	t.Cleanup(func() {
		if _, err := lab.Down(name); err != nil {
			t.Error(err)
		}
	})
	spec := []string{"lab", "up", "--name", name, "--routing", "bgp", "--topology", "leaf-spine:leaves=1,spines=1,hosts=1"}
	out := mustWeft(t, spec...)
	for _, want := range []string{name + " is up: leaf-spine:leaves=1,spines=1,hosts=1 with an operator's addresses (seed 1), 1 hosts, 2 switches, 2 links of 20 Mbit/s"} {
		if !strings.Contains(out, want) {
			t.Errorf("up says %s, want %s", out, want)
		}
	}
	wantError(t, strings.Join(append(spec, "--seed", "2"), " "), "in use (a graph, rate 20")
	wantError(t, "lab agents --name "+name, "BGP")
	wantError(t, "lab chaos --name "+name, "computed fabrics only")
	wantError(t, "lab fail --name "+name+" nosuch-leaf1", "no such node or link", "h1-1-leaf1")
	if out := mustWeft(t, "lab", "fail", "--name", name, "spine1"); !strings.Contains(out, "spine1 FAILED") {
		t.Errorf("fail says %s", out)
	}
	if out := mustWeft(t, "lab", "status", "--name", name); !strings.Contains(out, "FRR runs on 2 of 2 switches\n") || !strings.Contains(out, "spine1 FAILED") {
		t.Errorf("status says %s", out)
	}
	mustWeft(t, "lab", "heal", "--name", name)
	file := filepath.Join(t.TempDir(), "x.clab.yml")
	if out := mustWeft(t, "lab", "export", "--name", name, "--containerlab", file); !strings.Contains(out, "and 3 files in "+strings.TrimSuffix(file, ".clab.yml")+"\n") {
		t.Errorf("export says %s", out)
	}
	before := graphOf(t, name)
	mustWeft(t, "lab", "down", "--name", name)
	if out := mustWeft(t, "lab", "up", "--name", name, "--topology", file); strings.Contains(out, "guessed") {
		t.Errorf("up says %s", out)
	}
	if after := graphOf(t, name); after != before {
		t.Errorf("%s\nbefore\n%s", after, before)
	}
	if out := mustWeft(t, "lab", "down", "--name", name); out != fmt.Sprintf("lab %s is down, 3 namespaces removed\n", name) {
		t.Errorf("down says %s", out)
	}
}

func graphOf(t *testing.T, name string) string {
	t.Helper()
	l, err := lab.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return string(l.Config.Graph.Text())
}
