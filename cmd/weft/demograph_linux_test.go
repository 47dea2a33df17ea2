package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/internal/frr"
	"weft/internal/slowtest"
	"weft/topology"
	"weft/topology/graph"
	"weft/topology/graph/operator"
)

// graphFile writes the graph of a leaf-spine with a user's addresses, without rates.
func graphFile(t *testing.T) string {
	t.Helper()
	shape, err := topology.Parse("leaf-spine:leaves=2,spines=2,hosts=1")
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.New(operator.Spec(shape, 7))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "fabric.yaml")
	if err := os.WriteFile(file, g.Text(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// The demo runs in a graph of a user's own: the kernel's TCP by weft host, and weft's.
func TestDemo_graph(t *testing.T) {
	slowtest.Unraced(t)
	if os.Geteuid() != 0 {
		t.Skip("needs root: builds a lab of network namespaces")
	}
	if err := frr.Available(); err != nil {
		t.Skip(err)
	}
	file, report := graphFile(t), filepath.Join(t.TempDir(), "report.html")
	var notes bytes.Buffer
	c := program(t, "demo", "--topology", file, "--name", demoLab("g"), "--rate", "4", "--policies", "kernel-ecmp,host-auto,drb",
		"--warmup", "500ms", "--duration", "1500ms", "--json", "--report", report)
	c.Stderr = &notes
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &notes)
	}
	t.Logf("%s", &notes)
	if !strings.Contains(notes.String(), "spine dies is left out") {
		t.Errorf("it does not say what is left out:\n%s", &notes)
	}
	var list []outcomeJSON
	if err := json.Unmarshal(out, &list); err != nil || len(list) != 3 {
		t.Fatalf("%v: %s", err, out)
	}
	for _, o := range list {
		t.Logf("%s: %.1f %% of %.2f Mbit/s, shares %v", o.Policy, o.PercentOfIdeal, o.IdealMbit, o.SharePerPath)
		if o.Fabric != "in network namespaces, switches by FRR" || o.PercentOfIdeal <= 0 || o.PercentOfIdeal > 101 || o.RTTP50 <= 0 {
			t.Errorf("%+v", o)
		}
		// Two hosts, each at the full rate of its link.
		if want := 4.0 * plainPayload / fullFrame; o.IdealMbit < 0.999*want || o.IdealMbit > 1.001*want {
			t.Errorf("%s: ideal %.3f Mbit/s a host, want %.3f", o.Policy, o.IdealMbit, want)
		}
		sum, least := 0.0, 1.0
		for _, s := range o.SharePerPath {
			sum, least = sum+s, min(least, s)
		}
		if len(o.SharePerPath) != 2 || sum < 0.99 || sum > 1.01 || o.Policy != "kernel-ecmp" && least < 0.2 {
			t.Errorf("%s: shares %v", o.Policy, o.SharePerPath)
		}
	}
	html, err := os.ReadFile(report)
	if err != nil || !bytes.Contains(html, []byte("2 hosts, 4 switches, 6 links")) {
		t.Errorf("the report does not say what the fabric is: %v", err)
	}
	wantNoNamespaces(t, demoLab("g"))
}

// What the demo cannot do with a graph it says before it begins, with what to do instead.
func TestDemo_graphRefused(t *testing.T) {
	file := graphFile(t)
	wantError(t, "demo --fabric memory --topology "+file, "--topology "+file, "it is a graph", "--fabric netns", "weft sim permutation --topology "+file, "(give its links a rate)")
	wantError(t, "demo --encap srv6 --topology "+file, "--encap=srv6", "graph", "weft bench permutation")
	wantError(t, "demo --meter --topology "+file, "--meter", "graph", "leave it out")
	one := filepath.Join(t.TempDir(), "one.yaml")
	text := `nodes:
  h1: {tier: 0, addresses: [192.168.1.2]}
  h2: {tier: 0, addresses: [192.168.1.3]}
  leaf1: {tier: 1, prefixes: [192.168.1.0/26]}
links:
  - {ends: [h1, leaf1]}
  - {ends: [h2, leaf1]}
`
	write := func(text string) {
		if err := os.WriteFile(one, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(text)
	if (graphFabric{file: one}).canRun() == nil {
		wantError(t, "demo --topology "+one, "--topology "+one, "2 hosts", "another rack", "--traffic")
	}
	write(strings.Replace(text, "192.168.1.2]", "\"2001:db8::2\"]", 1))
	wantError(t, "demo --topology "+one, "host h1 has no IPv4 address", "addresses")
	write(strings.Replace(text, "  - {ends: [h2, leaf1]}\n", "", 1))
	wantError(t, "demo --topology "+one, "h2", "link")
	traffic := filepath.Join(t.TempDir(), "traffic.yaml")
	if err := os.WriteFile(traffic, []byte("traffic: {matrix: list, list: [{from: h1, to: h9}]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantError(t, "demo --topology "+file+" --traffic "+traffic, "traffic.list[0]", "from")
}
