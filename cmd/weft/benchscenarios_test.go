package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"weft/bench/scenario"
)

func TestBenchScenarios_json(t *testing.T) {
	if testing.Short() {
		t.Skip("50 MB are left out with -short")
	}
	out, err := weft(t, "bench", "scenarios", "--json", "drb-skew-20µs")
	if err != nil {
		t.Fatal(err)
	}
	var list []map[string]any
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 1 {
		t.Fatalf("%v\n%s", err, out)
	}
	want := []string{"goodput_gbps", "held_packets_max", "recoveries", "retransmits", "run", "scenario", "timeouts", "trace"}
	if got := slices.Sorted(maps.Keys(list[0])); !slices.Equal(got, want) {
		t.Errorf("fields %v, want %v", got, want)
	}
	if g := list[0]["goodput_gbps"].(float64); g < 5 || g > 10 {
		t.Errorf("%v Gbit/s", g)
	}
}

func TestBenchScenarios_bad(t *testing.T) {
	wantError(t, "bench scenarios drb-mouse", `"drb-mouse"`, "drb-mice")
	wantError(t, "bench skew --plot /nowhere/x.svg", "--plot=/nowhere/x.svg")
}

func TestPrintSkew_rows(t *testing.T) {
	rows := []scenario.SkewRow{
		{Name: "drb, sequence", Discipline: "sequence", Goodput: []float64{9.394, 0}},
		{Name: "drb, no resequencer", Discipline: "off", Goodput: []float64{1, 2}},
	}
	var b strings.Builder
	if err := printSkew(&b, []string{"0s", "1ms"}, rows); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"0s", "1ms", "drb, sequence", "9.39", "0.00"} {
		if !strings.Contains(b.String(), s) {
			t.Errorf("no %q in\n%s", s, b.String())
		}
	}
	if p := skewPlot([]string{"0s", "1ms"}, rows, false); len(p.Lines) != 2 || p.Lines[0].Dashed || !p.Lines[1].Dashed {
		t.Errorf("%+v", p)
	}
}
