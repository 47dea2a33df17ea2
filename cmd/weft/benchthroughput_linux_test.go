package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/bench/testbed"
	"weft/bench/throughput"
	"weft/lab"
)

// The command starts itself in the namespaces, so it is a process of its own.
func TestBenchThroughput_jsonAndAppend(t *testing.T) {
	if err := testbed.CanUseNamespaces(); err != nil {
		t.Skipf("network namespaces: %v", err)
	}
	if testing.Short() {
		t.Skip("what takes seconds is left out with -short")
	}
	dir := t.TempDir()
	results := filepath.Join(dir, "RESULTS.md")
	if err := os.WriteFile(results, []byte("# Results\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	l := fmt.Sprintf("tputc%d", os.Getpid())
	t.Cleanup(func() { lab.Down(l) })
	cmd := program(t, "bench", "throughput", "--cases=kernel,wireguard-go", "--rounds=1", "--duration=300ms", "--warmup=100ms",
		"--latency", "--anew", "--name="+l, "--wireguard="+dir, "--json", "--append="+results)
	var notes bytes.Buffer
	cmd.Stderr = &notes
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &notes)
	}
	var list []map[string]any
	if err := json.Unmarshal(out, &list); err != nil || len(list) != 1 {
		t.Fatalf("%v\n%s", err, out)
	}
	want := []string{"allocs_per_mb", "case", "connections", "connections_per_second", "cpu_s_per_gb", "gbps", "gbps_per_core", "gbps_per_core_max", "gbps_per_core_min",
		"idle_percent", "latency", "max", "min", "other_cores", "path_shares", "per_core_of_kernel", "process_cpu_s_per_gb",
		"retransmits_per_gb", "rounds", "run", "steal_percent", "tcp"}
	if got := slices.Sorted(maps.Keys(list[0])); !slices.Equal(got, want) {
		t.Errorf("fields %v, want %v", got, want)
	}
	if list[0]["case"] != "kernel" || list[0]["tcp"] != "kernel cubic" || list[0]["gbps"].(float64) <= 0 {
		t.Errorf("%v", list[0])
	}
	requests, _ := list[0]["latency"].([]any)
	for i, want := range []map[string]any{{"bytes": 64., "beside_bulk": false}, {"bytes": 16384., "beside_bulk": false}, {"bytes": 64., "beside_bulk": true}, {"bytes": 16384., "beside_bulk": true}} {
		got, _ := slices.Concat(requests, make([]any, 4))[i].(map[string]any)
		if p50, _ := got["p50_us"].(float64); got["bytes"] != want["bytes"] || got["beside_bulk"] != want["beside_bulk"] || p50 <= 0 || got["p99_us"].(float64) < p50 || got["p999_us"] == nil {
			t.Errorf("requests: %v, want %v", got, want)
		}
	}
	if n, _ := list[0]["connections_per_second"].(float64); list[0]["connections"] != 1. || n <= 0 {
		t.Errorf("connections: %v", list[0])
	}
	for _, word := range []string{"note: wireguard-go is left out: no source of the program"} {
		if !strings.Contains(notes.String(), word) {
			t.Errorf("standard error does not say %q: %s", word, &notes)
		}
	}
	section, _ := os.ReadFile(results)
	for _, word := range []string{"## " + time.Now().Format("2006-"), "`weft bench throughput --cases=kernel,wireguard-go --rounds=1", "| kernel | kernel cubic | 1 |", "| case | connections | 64 B idle"} {
		if !strings.Contains(string(section), word) {
			t.Errorf("no %q in\n%s", word, section)
		}
	}
	if left, _ := filepath.Glob("/run/netns/weft-" + l + "-*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestThroughputRows_asManyCellsAsHeads(t *testing.T) {
	rows := throughputRows([]throughput.Result{
		{Case: "kernel", TCP: "kernel cubic", Connections: 1, Gbps: 20.126, OfKernel: 1, PathShares: []float64{0, 1}},
		{Case: "x", TCP: "netstack cubic", OfKernel: 0},
	})
	for _, r := range rows {
		if len(r) != len(rows[0]) {
			t.Errorf("%d cells, %d heads: %v", len(r), len(rows[0]), r)
		}
	}
	line := strings.Join(rows[1], ";")
	for _, s := range []string{"kernel;kernel cubic;1;20.13", "100 %", "0.0 100.0"} {
		if !strings.Contains(line, s) {
			t.Errorf("no %q in %s", s, line)
		}
	}
}

func TestBenchThroughput_bad(t *testing.T) {
	const bench = "bench throughput "
	wantError(t, bench+"--rounds 0", "--rounds=0", "1 to 1000")
	wantError(t, bench+"--duration 1ms", "--duration=1ms", "100ms")
	wantError(t, bench+"--spine-rate -1", "--spine-rate=-1", "or 0 for none")
	wantError(t, bench+"--connections 0,1", "--connections=[0 1]", "1 to 1000")
	wantError(t, bench+"--warmup -1s", "--warmup=-1s")
	wantError(t, bench+"--cases kernel,pigeon", "--cases", `"pigeon"`, "known: kernel")
	wantError(t, bench+"now", "now")
	wantError(t, bench+workerCommand, "an argument is missing")
	if err := testbed.CanUseNamespaces(); err == nil {
		wantError(t, bench+"--append=/nowhere/x.md", "--append", "/nowhere")
	}
}

// A flag narrows its axis of the sweep to one value.
func TestBenchThroughput_sweepIsNarrowed(t *testing.T) {
	o := benchThroughputOptions{spineRate: 250, loss: 0.1}
	given := func(names ...string) func(string) bool {
		return func(s string) bool { return slices.Contains(names, s) }
	}
	if rates, troubles := o.regimes(given()); len(rates) != len(throughput.SweepRates) || len(troubles) != len(throughput.Troubles) {
		t.Errorf("without flags: %v, %v", rates, troubles)
	}
	rates, troubles := o.regimes(given("spine-rate", "loss"))
	if len(rates) != 1 || rates[0] != 250 || len(troubles) != 1 || troubles[0] != (throughput.Trouble{Paths: 4, Loss: 0.001}) {
		t.Errorf("%v, %v", rates, troubles)
	}
}

func TestBenchThroughput_sweepMap(t *testing.T) {
	troubles := []throughput.Trouble{{Paths: 4}, {Paths: 4, Loss: 0.01}, {Paths: 16}}
	var cells []throughput.Cell
	for i, v := range []float64{1, 2, 3, 0, 5, 6} { // by trouble, then by connections
		cells = append(cells, throughput.Cell{Regime: throughput.Regime{SpineRate: 250, Connections: []int{1, 16}[i%2]}, OfBest: v})
	}
	var s strings.Builder
	if err := sweepMap(cells, troubles, []int{1, 16}).WriteMarkdown(&s); err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{"| 4 even | 4 1 % | 16 even |", "| 250, 1 | 1 | 3 | 5 |", "| 250, 16 | 2 |  | 6 |"} {
		if !strings.Contains(s.String(), row) {
			t.Errorf("no %q in\n%s", row, s.String())
		}
	}
}

func TestBenchThroughput_sweepRefuses(t *testing.T) {
	wantError(t, "bench throughput --plot x.svg", "--plot is for --sweep")
	wantError(t, "bench throughput --sweep --latency", "--latency")
	wantError(t, "bench throughput --sweep --cases kernel", "--cases", "host/auto")
	wantError(t, "bench throughput --sweep --paths 16 --loss 1", "--paths")
	wantError(t, "bench throughput --paths 17", "--paths=17")
	wantError(t, "bench throughput --loss 99", "--loss=99")
	wantError(t, "bench throughput --skew 1s", "--skew=1s")
}
