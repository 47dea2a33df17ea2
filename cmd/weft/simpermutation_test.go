package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
	out := mustWeft(t, "sim", "permutation", "--topology", file, "--bytes", "100000")
	if !strings.HasPrefix(out, "2 of 2 flows of 100000 bytes ended") {
		t.Errorf("it prints %q", out)
	}
	wantError(t, "sim permutation --policy luopan --topology "+file, "luopan", "congestion")
	wantError(t, "sim permutation", "--topology")
}
