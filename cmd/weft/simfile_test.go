package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/bench/simfile"
)

// The examples run, and give what docs/research.md says.
func TestSimRun_examples(t *testing.T) {
	page := filepath.Join(t.TempDir(), "compare.html")
	out := mustWeft(t, "sim", "run", "../../examples/sim/compare.yaml", "--report", page)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if strings.Count(out, "switch-conga ") != strings.Count(out, "policy ")*2 || !strings.Contains(lines[0], "matrix other-racks, sizes websearch_dctcp times 0.02, seeds 1 to 3, medians") || !strings.Contains(out, "p99.9") {
		t.Errorf("it prints\n%s", out)
	}
	html, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"Completion times at load 0.3", "Goodput at load 0.6", "switch-conga", "<svg"} {
		if !strings.Contains(string(html), s) {
			t.Errorf("no %q on the page", s)
		}
	}
	var results []simfile.Result
	if err := json.Unmarshal([]byte(mustWeft(t, "sim", "run", "../../examples/sim/graph.yaml", "--json", "-j", "1")), &results); err != nil {
		t.Fatal(err)
	}
	if len(results) != 3 || results[2].Policy != "presto" || results[2].Flows != 4 || results[2].Unfinished != 0 {
		t.Errorf("%+v", results)
	}
}

func TestSimRun_fileErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "own.yaml")
	if err := os.WriteFile(file, []byte("topology: fat-tree:k=4\nspeed: 5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantError(t, "sim run "+file, "own.yaml:2: ", "speed", "unknown key")
	wantError(t, "sim run none.yaml", "none.yaml", "no such file")
	wantError(t, "sim run drb-f9 "+file, "a file is run alone")
	wantError(t, "sim run "+file+" --seeds 3", "--seeds", "write seeds and times into it")
	wantError(t, "sim run "+file+" --quick", "--quick")
	wantError(t, "sim run "+file+" -j 0", "--jobs=0")
}
