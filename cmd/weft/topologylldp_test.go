package main

import (
	"strings"
	"testing"
)

func TestTopology_fromLLDP(t *testing.T) {
	const dir = "../../internal/discover/testdata/lldp"
	whole := mustWeft(t, "topology", "from-lldp", dir)
	for _, want := range []string{"# paths between racks: 2 to 2\n", "# guessed: tier 2 of spine1, spine2\n", "  - {ends: [leaf1, spine1], ports: [swp1, swp1]}\n"} {
		if !strings.Contains(whole, want) {
			t.Errorf("no %q in\n%s", want, whole)
		}
	}
	one := mustWeft(t, "topology", "from-lldp", dir+"/leaf1.json", dir+"/leaf2.json", dir+"/h2.json")
	if _, links, _ := strings.Cut(whole, "links:"); !strings.Contains(one, links) {
		t.Errorf("without the spine's file\n%s", one)
	}
	wantError(t, "topology from-lldp "+t.TempDir(), "no file ends in .json")
}
