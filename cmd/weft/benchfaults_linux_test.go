package main

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"weft/bench/faults"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
	"weft/lab"
)

// Three faults of different kinds, in one lab: a tool names the cause of each first.
func TestBenchFaults(t *testing.T) {
	slowtest.Unraced(t)
	if err := lab.CanBuild(); err != nil {
		t.Skip(err)
	}
	for _, program := range []string{"nft", "tc"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	t.Setenv(asProgram, "1")
	const names = "cable-down,misnamed,daemon-killed"
	var results []faults.Result
	out := mustWeft(t, "bench", "faults", "--only", names, "--json", "--name", kerneltest.LabName("f"), "--within", "1m")
	out = out[max(strings.Index(out, "[\n"), 0):] // where it is from comes before
	if err := json.Unmarshal([]byte(out), &results); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if len(results) != strings.Count(names, ",")+1 {
		t.Fatalf("%d results: %s", len(results), out)
	}
	for _, r := range results {
		if r.Told == "" || r.Error != "" {
			t.Errorf("%s: nobody says %s: %+v", r.Fault, r.Cause, r)
		}
	}
}

func TestBenchFaults_flags(t *testing.T) {
	wantError(t, "bench faults --only nosuch", "--only", "nosuch", "--help")
	wantError(t, "bench faults --rate 0", "--rate")
	wantError(t, "bench faults --load 2", "--load")
	wantError(t, "bench faults --within 0s", "--within")
	wantError(t, "bench faults --healthy -1s", "--healthy")
	wantError(t, "bench faults --healthy 1s --only loss", "--only")
}
