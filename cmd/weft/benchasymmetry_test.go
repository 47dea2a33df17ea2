package main

import (
	"encoding/json"
	"strings"
	"testing"

	"weft/bench/asymmetry"
)

func TestBenchAsymmetry_bad(t *testing.T) {
	const bench = "bench asymmetry "
	wantError(t, bench+"--scenarios ring", "--scenarios", `"ring"`, "link-down, symmetric")
	wantError(t, bench+"--policies best", "--policies", `"best"`)
	wantError(t, bench+"--policies kernel-ecmp", "kernel-ecmp is the kernel's TCP", "luopan")
	wantError(t, bench+"--policies=", "--policies names none")
	wantError(t, bench+"--fabric air", "--fabric=air", "memory")
	wantError(t, bench+"--encap gre", "--encap", `"gre"`, "srv6")
	wantError(t, bench+"--encap mpls", "--encap=mpls", "srv6")
	wantError(t, bench+"--rate -1", "--rate=-1", "Mbit/s")
	wantError(t, bench+"--hosts 99", "--hosts=99", "1 to 32")
	wantError(t, bench+"--streams -1", "--streams=-1")
	wantError(t, bench+"--duration 1ms", "--duration=1ms", "500ms")
	wantError(t, bench+"--tau 1h", "--tau=1h0m0s")
	wantError(t, bench+"--flowcell 3", "--flowcell", "FlowcellBytes is 3")
	wantError(t, bench+"--expiry 1ns", "--expiry", "Expiry is 1ns")
	wantError(t, bench+"now", "now")
}

func TestBenchAsymmetry_printsJSON(t *testing.T) {
	out, err := weft(t, "bench", "asymmetry", "--json", "--fabric", "memory", "--scenarios", "symmetric", "--policies", "rand,luopan",
		"--rate", "5", "--hosts", "1", "--warmup", "100ms", "--duration", "500ms")
	if err != nil {
		t.Fatal(err)
	}
	var results []struct {
		Topology     string             `json:"topology"`
		Policy       string             `json:"policy"`
		Percent      float64            `json:"percent_of_ideal"`
		MiceP99      float64            `json:"mice_p99_us"`
		SharePerPath map[string]float64 `json:"share_per_path"`
		CPUBound     bool               `json:"cpu_bound"`
	}
	out = out[max(strings.Index(out, "[\n"), 0):] // notes come before
	if err := json.Unmarshal([]byte(out), &results); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if len(results) != 2 || results[0].Policy != "rand" || results[1].Policy != "luopan" {
		t.Fatalf("%+v", results)
	}
	for _, r := range results {
		if r.Topology != "symmetric" || r.Percent <= 0 || len(r.SharePerPath) != 4 {
			t.Errorf("%+v", r)
		}
		// On a busy machine no mouse may end within the time.
		if r.MiceP99 <= 0 && !r.CPUBound {
			t.Errorf("no mouse ended: %+v", r)
		}
	}
}

func TestAsymmetryRows_asManyCellsAsHeads(t *testing.T) {
	rows := asymmetryRows([]asymmetry.Result{
		{Topology: "symmetric", Policy: "presto", SharePerPath: map[string]float64{"P1": 24.96}},
		{Policy: "luopan", Probing: &asymmetry.Probing{MeasuredPercent: 0.32}},
	})
	for _, r := range rows {
		if len(r) != len(rows[0]) {
			t.Errorf("%d cells, %d heads: %v", len(r), len(rows[0]), r)
		}
	}
	if !strings.Contains(strings.Join(rows[1], ";"), "symmetric;presto;") || !strings.Contains(strings.Join(rows[1], ";"), ";25.0;") ||
		!strings.Contains(strings.Join(rows[2], ";"), ";0.32;") {
		t.Errorf("%v", rows)
	}
}
