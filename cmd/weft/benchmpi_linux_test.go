package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"weft/bench/mpi"
	"weft/internal/slowtest"
)

func TestBenchMPI_bad(t *testing.T) {
	const bench = "bench mpi "
	wantError(t, bench+"--rows best", "--rows", `"best"`, "switch-drill")
	wantError(t, bench+"--rows switch-drb,switch-drb", "--rows", "twice")
	wantError(t, bench+"--pattern ring", "--pattern", "ring", "alltoall")
	wantError(t, bench+"--rate -1", "--rate=-1")
	wantError(t, bench+"--bytes 63", "--bytes=63", "64")
	wantError(t, bench+"--by 16", "--by=16", "15")
	wantError(t, bench+"--rounds 0", "--rounds=0")
	wantError(t, bench+"--repeat 0", "--repeat=0")
	wantError(t, bench+"--topology ring", "--topology")
}

// Ranks of OpenMPI do their rounds over switches that balance and over hosts that spray. They
// check what they receive.
func TestBenchMPI_measures(t *testing.T) {
	slowtest.Unraced(t)
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if _, err := exec.LookPath("mpicc"); err != nil {
		t.Skip("no OpenMPI: apt install openmpi-bin libopenmpi-dev gcc")
	}
	self := program(t)
	for _, pattern := range mpi.Patterns {
		o := benchMPIOptions{rate: 20, topology: "leaf-spine:leaves=2,spines=2,hosts=2", repeat: 1, name: "tmpi", json: true,
			rows: []string{"switch-drill", "host-auto"}, self: self.Args[:1], env: self.Env}
		o.Pattern, o.Bytes, o.By, o.Rounds = pattern, 64<<10, 2, 2
		var out, notes bytes.Buffer
		if err := o.run(t.Context(), &out, &notes); err != nil {
			t.Fatalf("%s: %v", pattern, err)
		}
		var results []mpiResult
		if err := json.Unmarshal(out.Bytes(), &results); err != nil {
			t.Fatalf("%v\n%s", err, &out)
		}
		if len(results) != 2 || len(results[0].All) != 2 || results[0].Row != "switch-drill" || results[0].Ranks != 4 {
			t.Fatalf("%+v", results)
		}
		for _, r := range results {
			for _, s := range r.All { // 64 KB at 20 Mbit/s
				if least := 0.8 * 64 * 1024 * 8 / 20e6; pattern == "shift" && s < least {
					t.Errorf("%s: a round in %.3f s; the links take %.3f", r.Row, s, least)
				}
			}
		}
	}
}
