package policy

import (
	"slices"
	"strings"
	"testing"

	"weft/drb"
	"weft/flowcell"
)

func TestGet_everyName(t *testing.T) {
	for _, want := range []Policy{
		{"ecmp", flowcell.UnitFlow, drb.Hash, "baseline"},
		{"rb", flowcell.UnitPacket, drb.Random, "DRB §3.1.2"},
		{"rrb", flowcell.UnitPacket, drb.RoundRobin, "DRB §3.1.2"},
		{"drb", flowcell.UnitPacket, drb.DigitReversal, "DRB §3.1.2"},
	} {
		if got, err := Get(want.Name); err != nil || got != want {
			t.Errorf("Get(%q) = %+v, %v; want %+v", want.Name, got, err, want)
		}
		if !slices.Contains(Names(), want.Name) {
			t.Errorf("Names() = %v, without %s", Names(), want.Name)
		}
	}
}

func TestNames_areFoundAndUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range Names() {
		if p, err := Get(name); err != nil || p.Name != name || p.Source == "" || seen[name] {
			t.Errorf("Get(%q) = %+v, %v", name, p, err)
		}
		seen[name] = true
	}
	if !seen[Default] || !seen[PerFlow.Name] {
		t.Errorf("default %q or per-flow %q is not in the table", Default, PerFlow.Name)
	}
}

func TestGet_unknownListsTheKnown(t *testing.T) {
	for _, name := range []string{"", "DRB", "drb ", "letfly"} {
		_, err := Get(name)
		if err == nil {
			t.Errorf("Get(%q) finds something", name)
			continue
		}
		for _, s := range append(Names(), `"`+name+`"`) {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("Get(%q): %v; does not say %s", name, err, s)
			}
		}
	}
}

func TestSprays_onlyWhenAFlowMayChangePaths(t *testing.T) {
	for name, want := range map[string]bool{"ecmp": false, "rb": true, "rrb": true, "drb": true} {
		if p, _ := Get(name); p.Sprays() != want {
			t.Errorf("%s sprays: %v", name, p.Sprays())
		}
	}
	if PerFlow.Sprays() {
		t.Error("PerFlow sprays")
	}
}
