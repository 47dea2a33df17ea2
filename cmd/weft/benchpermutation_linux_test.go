package main

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"weft/internal/frr"
	"weft/internal/slowtest"
)

func TestBenchPermutation_bad(t *testing.T) {
	const bench = "bench permutation "
	wantError(t, bench+"--routing ospf", "--routing ospf", "static or bgp")
	wantError(t, bench+"--families 5", "--families", `"5"`)
	wantError(t, bench+"--families=", "--families names none")
	wantError(t, bench+"--families 6", "--families 6", "--routing bgp")
	wantError(t, bench+"--rows best", "--rows", `"best"`, "kernel-drb")
	wantError(t, bench+"--encap srv6", "--encap srv6", "--routing bgp")
	wantError(t, bench+"--rate -1", "--rate=-1")
	wantError(t, bench+"--permutations 0", "--permutations=0")
	wantError(t, bench+"--topology ring", "--topology")
}

// All hosts send, in both families and by SIDs of an operator, evenly over the
// spines.
func TestBenchPermutation_inFabricsWithBGP(t *testing.T) {
	slowtest.Unraced(t)
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if err := frr.Available(); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct {
		encap string
		rows  []string
	}{{"ipip", []string{"kernel-drb", "gateway-presto", "drb"}}, {"srv6", []string{"kernel-drb", "gateway-presto", "drb"}}} {
		if c.encap == "srv6" && !slowtest.Long() { // TestHost_sendsBySIDs has the same in less time
			continue
		}
		t.Run(c.encap, func(t *testing.T) {
			self := program(t)
			o := benchPermutationOptions{routing: "bgp", name: "tperm", rows: c.rows, families: []string{"4", "6"}, resultOutput: resultOutput{json: true},
				self: self.Args[:1], env: self.Env,
				demo: demoOptions{topology: "leaf-spine:leaves=2,spines=2,hosts=2", rate: 20, encap: c.encap, flowcell: 4096,
					duration: 2e9, warmup: 1e9, permutations: 1, seed: 5}}
			var out, notes bytes.Buffer
			if err := o.run(t.Context(), &out, &notes); err != nil {
				t.Fatal(err)
			}
			var results []permutationResult
			if err := json.Unmarshal(out.Bytes(), &results); err != nil {
				t.Fatalf("%v\n%s", err, &out)
			}
			if len(results) != 2*len(c.rows) {
				t.Fatalf("%d results: %+v", len(results), results)
			}
			for _, r := range results {
				t.Logf("%+v", r)
				// The links carry all that they can, so a queue that has built up at one spine
				// may stand there, and a host that has seen it for a second sends by the other
				// spine for two (liveness/slow.go). If both hosts of a rack used one spine, the
				// other would have 25 %.
				if r.PercentOfIdeal < 5 || r.PercentOfIdeal > 101 || r.SpineMin < 0.3 || r.RTTP50 <= 0 {
					t.Errorf("%+v", r)
				}
			}
		})
	}
}
