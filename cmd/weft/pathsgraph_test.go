package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A graph's paths are bouncing switches. What the switches' own ECMP decides is one path,
// which weighs as much as its ways carry.
func TestPaths_ofAGraph(t *testing.T) {
	file := filepath.Join(t.TempDir(), "graph.yaml")
	const text = `nodes:
  spine1: {tier: 2, addresses: [172.16.0.1], as: 65001}
  spine2: {tier: 2, addresses: [172.16.0.2], as: 65002}
  leaf1: {tier: 1, prefixes: [192.168.1.0/26], as: 65101}
  leaf2: {tier: 1, prefixes: [192.168.2.0/26], as: 65102}
  web1: {addresses: [192.168.1.2]}
  web2: {addresses: [192.168.1.3]}
  db1: {addresses: [192.168.2.2]}
links:
  - {ends: [web1, leaf1], rate: 10000}
  - {ends: [web2, leaf1], rate: 10000}
  - {ends: [db1, leaf2], rate: 10000}
  - {ends: [leaf1, spine1], rate: 10000, count: 2}
  - {ends: [leaf1, spine2], rate: 10000}
  - {ends: [leaf2, spine1], rate: 10000, count: 2}
  - {ends: [leaf2, spine2], rate: 10000}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const over1 = "spine1 (172.16.0.1)  web1 > leaf1 >[2 ways, by the switches' ECMP]> spine1 >[2 ways, by the switches' ECMP]> leaf2 > db1\n"
	const want = "drb: digit reversal for every packet, web1 to db1, 2 paths\n" + over1 +
		"spine2 (172.16.0.2)  web1 > leaf1 > spine2 > leaf2 > db1\n" + over1 + "weights: spine1=2 spine2=1\n"
	if got := mustWeft(t, "paths", "--topology", file, "--from", "web1", "--to", "192.168.2.2", "--policy", "drb"); got != want {
		t.Errorf("printed\n%s\nwant\n%s", got, want)
	}
	if got := mustWeft(t, "paths", "--topology", file, "--from", "web1", "--to", "web2"); got != "web1 to web2: direct, both are at leaf1; no bounce, no encapsulation\n" {
		t.Errorf("in a rack: %s", got)
	}
	wantError(t, "paths --topology "+file+" --from web1 --to leaf2", "--to", "no such host")
	wantError(t, "paths --topology "+file+" --from web1 --to db1 --encap srv6", "switch spine1 has no SIDs")
	wantError(t, "bench failover --topology "+file, "graph")
}

// By SRv6 a graph's paths are SIDs.
func TestPaths_graphSIDs(t *testing.T) {
	out := mustWeft(t, "paths", "--topology", sidsFile, "--from", "h1", "--to", "h2", "--encap", "srv6")
	for _, want := range []string{"spine1 (fcbb:bbbb:1:fe04::)  h1 > leaf1 > spine1 > leaf2 > h2", "spine2 (fcbb:bbbb:2:f4::)  h1"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	text, err := os.ReadFile(sidsFile)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "graph.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), `, sids: {node: "fcbb:bbbb:1::/48"}`, "", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	wantError(t, "paths --from h1 --to h2 --encap srv6 --topology "+file, "--encap srv6", "switch spine1 has no SIDs")
	wantError(t, "paths --from h1 --to h2 --encap mpls --topology "+file, "--encap mpls")
}
