package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weft/bench/simfile"
)

func TestSimPermutation_graph(t *testing.T) {
	file := filepath.Join(t.TempDir(), "fabric.yaml")
	text := `nodes:
  h1: {tier: 0, addresses: [192.168.1.2]}
  h2: {tier: 0, addresses: [192.168.2.2]}
  leaf1: {tier: 1, prefixes: [192.168.1.0/26]}
  leaf2: {tier: 1, prefixes: [192.168.2.0/26]}
  spine1: {tier: 2, addresses: [172.16.0.1]}
links:
  - {ends: [h1, leaf1], rate: 100}
  - {ends: [h2, leaf2], rate: 100}
  - {ends: [leaf1, spine1], rate: 100}
  - {ends: [leaf2, spine1], rate: 100}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := mustWeft(t, "sim", "permutation", "--topology", file, "--bytes", "100000", "--seed", "7")
	if !strings.HasPrefix(out, "2 of 2 flows of 100000 bytes ended") {
		t.Errorf("it prints %q", out)
	}
	csv := filepath.Join(t.TempDir(), "p.csv")
	var r struct {
		simfile.Result
		Run runInfo `json:"run"`
	}
	text = mustWeft(t, "sim", "permutation", "--topology", file, "--bytes", "100000", "--seed", "7", "--json", "--csv", csv)
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if r.Flows != 2 || r.Unfinished != 0 || r.Policy != "drb" || r.Topology != file || r.Seed != 7 || len(r.Run.Seeds) != 1 || r.Run.Seeds[0] != 7 {
		t.Errorf("%+v", r)
	}
	// Each host sends 100,000 bytes over links of 100 Mbit/s: 8 ms without headers.
	if r.LastMs < 8 || !strings.Contains(out, fmt.Sprintf("the last after %v;", time.Duration(r.LastMs*1e6).Round(time.Microsecond))) {
		t.Errorf("the last after %v ms; the sentence is %q", r.LastMs, out)
	}
	lines, err := os.ReadFile(csv)
	if err != nil {
		t.Fatal(err)
	}
	if head, row, _ := strings.Cut(string(lines), "\n"); !strings.HasPrefix(head, "policy,load,topology,") || !strings.HasPrefix(row, "drb,,"+file+",") || strings.Count(row, "\n") != 1 {
		t.Errorf("the CSV is\n%s", lines)
	}
	wantError(t, "sim permutation --policy luopan --topology "+file, "luopan", "congestion")
	wantError(t, "sim permutation", "--topology")
}
