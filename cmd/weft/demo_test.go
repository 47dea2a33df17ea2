package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/bench/permutation"
	"weft/bench/testbed"
	"weft/internal/slowtest"
	"weft/topology"
)

// demoLab is the name of a lab of this process's demo.
func demoLab(letter string) string { return fmt.Sprintf("t%d%s", os.Getpid(), letter) }

func TestDemo_bad(t *testing.T) {
	wantError(t, "demo --topology fat-tree:k=5", "k=5")
	wantError(t, "demo --policies drb,best", "--policies", `"best"`, "kernel-ecmp")
	wantError(t, "demo --resequencer maybe", "--resequencer", "\"maybe\" is unknown", "sequence")
	wantError(t, "demo --fabric cloud", "--fabric=cloud", "netns")
	wantError(t, "demo --flowcell 100", "--flowcell", "FlowcellBytes is 100")
	wantError(t, "demo --permutations 0", "--permutations=0")
	wantError(t, "demo --duration 0s", "--duration")
	wantError(t, "demo --rate -1", "--rate=-1")
	wantError(t, "demo --rate 1e300", "--rate=1e+300")
	wantError(t, "demo --policies=", "--policies")
	wantError(t, "demo --fabric memory --policies kernel-ecmp --report "+os.DevNull, "none of --policies kernel-ecmp runs in memory")
	wantError(t, "demo --fabric memory --report "+t.TempDir(), "--report", "is a directory")
	wantError(t, "demo --fabric memory --report -", "--report=-", "/dev/stdout")
	wantError(t, "demo --fabric memory --report "+os.DevNull+" --csv -", "--csv=-", "/dev/stdout")
	wantError(t, "demo --fabric memory --hold -1s", "--hold")
	wantError(t, "demo --fabric memory --report /nonexistent/report.html", "/nonexistent/report.html")
}

// demoJSON runs a short demo and returns its rows by policy.
func demoJSON(t *testing.T, args ...string) map[string]outcomeJSON {
	t.Helper()
	report := filepath.Join(t.TempDir(), "report.html")
	out := mustWeft(t, append([]string{"demo", "--json", "--report", report, "--warmup", "500ms", "--duration", "1500ms"}, args...)...)
	var list []outcomeJSON
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	html, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	rows := make(map[string]outcomeJSON)
	for _, o := range list {
		rows[o.Policy] = o
		if !bytes.Contains(html, []byte(o.Policy)) {
			t.Errorf("the report does not mention %s", o.Policy)
		}
		if o.PercentOfIdeal <= 0 || o.Jain <= 0 || o.Jain > 1.000001 || o.RTTP50 <= 0 || o.RTTP99 < o.RTTP50 || o.Mbit.Max < o.Mbit.Min {
			t.Errorf("%+v", o)
		}
		sum := 0.0
		for _, s := range o.SharePerPath {
			sum += s
		}
		if len(o.SharePerPath) != 4 || sum < 0.99 || sum > 1.01 {
			t.Errorf("%s: shares %v", o.Policy, o.SharePerPath)
		}
	}
	return rows
}

// wantEven checks that all spines carry about the same. In 1.5 s at 3 Mbit/s each carries
// some 1300 packets of 16 flows, and 5 % of these are 65. A flow goes round the spines, so
// where the run cuts its round it gives one of them a packet more than another, at the
// beginning and at the end: 32 at worst. The other 33 are for what the queues of a spine's
// four ports held at these moments. In a long run spines are within 2 %.
func wantEven(t *testing.T, o outcomeJSON, percent float64) {
	t.Helper()
	least, most := 1.0, 0.0
	for _, s := range o.SharePerPath {
		least, most = min(least, s), max(most, s)
	}
	if least < (1-percent/100)*most {
		t.Errorf("%s: shares %v differ by more than %g %%", o.Policy, o.SharePerPath, percent)
	}
}

func TestDemo_inMemory(t *testing.T) {
	rows := demoJSON(t, "--fabric", "memory", "--rate", "3", "--policies", "kernel-ecmp,ecmp,drb")
	if len(rows) != 2 || rows["drb"].Fabric != "in memory, in virtual time" {
		t.Errorf("rows %+v: want ecmp and drb, in memory", rows)
	}
	wantEven(t, rows["drb"], 5)
	// Virtual time does not measure the machine, so here figures can be asked for.
	if drb, ecmp := rows["drb"], rows["ecmp"]; drb.PercentOfIdeal < 1.3*ecmp.PercentOfIdeal || drb.IdlePercent != -1 {
		t.Errorf("drb %+v, ecmp %+v", drb, ecmp)
	}
	if o := rows["drb"].OutOfOrder; o == nil || o.After > o.Before {
		t.Errorf("out of order: %+v", o)
	}
}

// Without privileges the demo says the same in every run, and says what it is.
func TestDemo_inMemoryIsReproducible(t *testing.T) {
	args := []string{"demo", "--fabric", "memory", "--policies", "ecmp,drb", "--report", "", "--warmup", "100ms", "--duration", "100ms"}
	first, second := mustWeft(t, args...), mustWeft(t, args...)
	if first != second || !strings.Contains(first, "in virtual time") {
		t.Errorf("two runs with one seed:\n%s%s", first, second)
	}
	if other := mustWeft(t, append(args, "--seed", "2")...); other == first {
		t.Errorf("another seed says the same:\n%s", other)
	}
}

func TestDemo_inNamespaces(t *testing.T) {
	slowtest.System(t)
	if os.Geteuid() != 0 {
		t.Skip("needs root: builds a lab of network namespaces")
	}
	rows := demoJSON(t, "--fabric", "netns", "--skip-failover", "--name", demoLab("d"), "--rate", "3", "--policies", "kernel-ecmp,drb")
	if len(rows) != 2 || rows["drb"].Fabric != "in network namespaces" {
		t.Errorf("rows %+v: want kernel-ecmp and drb, in network namespaces", rows)
	}
	wantEven(t, rows["drb"], 50) // a path that is slow for a second, or whose probes are late, rests for a while
	wantNoNamespaces(t, demoLab("d"))
}

func TestDemo_table(t *testing.T) {
	out := mustWeft(t, "demo", "--fabric", "memory", "--rate", "2", "--policies", "rrb", "--report", "",
		"--warmup", "200ms", "--duration", "500ms", "--permutations", "2", "--resequencer", "off")
	for _, w := range []string{"rrb", "% of", "ideal:", "2 permutation(s)", "in memory"} {
		if !strings.Contains(out, w) {
			t.Errorf("the table does not say %q:\n%s", w, out)
		}
	}
}

func wantNoNamespaces(t *testing.T, lab string) {
	t.Helper()
	left, err := filepath.Glob("/run/netns/weft-" + lab + "-*")
	if err != nil || len(left) > 0 {
		t.Errorf("namespaces left behind: %v, %v", left, err)
	}
}

// Ctrl-C at any moment leaves nothing behind, nor does a terminal that closes.
func TestDemo_interrupted(t *testing.T) {
	slowtest.System(t)
	if os.Geteuid() != 0 {
		t.Skip("needs root: builds a lab of network namespaces")
	}
	for i, after := range []time.Duration{0, 30, 100, 300, 800, 2000} {
		sig := []syscall.Signal{syscall.SIGINT, syscall.SIGHUP}[i%2]
		if signal.Ignored(sig) { // under nohup a program that has only begun ignores it, too
			sig = syscall.SIGTERM
		}
		var stderr bytes.Buffer
		c := program(t, "demo", "--fabric", "netns", "--name", demoLab("i"), "--report", "", "--policies", "drb", "--rate", "2", "--duration", "1m")
		c.Stderr = &stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(after * time.Millisecond)
		c.Process.Signal(sig)
		ended := time.AfterFunc(20*time.Second, func() { c.Process.Kill() })
		if err := c.Wait(); err == nil {
			t.Errorf("%v after %d ms: no error", sig, after)
		}
		if !ended.Stop() {
			t.Errorf("%v after %d ms: did not end:\n%s", sig, after, stderr.String())
		}
		wantNoNamespaces(t, demoLab("i"))
	}
	// A reader of the output that goes away, as in weft demo | head -0.
	c := program(t, "demo", "--fabric", "netns", "--skip-failover", "--name", demoLab("i"), "--report", "", "--policies", "drb", "--rate", "2", "--warmup", "0s", "--duration", "300ms")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	out.Close()
	if err := c.Run(); err == nil {
		t.Error("nobody read the table: no error")
	}
	wantNoNamespaces(t, demoLab("i"))
}

func TestReportFile_leavesDevicesAlone(t *testing.T) {
	before, err := os.Stat(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	mustWeft(t, "demo", "--fabric", "memory", "--policies", "drb", "--rate", "2", "--warmup", "0s", "--duration", "200ms", "--report", os.DevNull)
	after, err := os.Stat(os.DevNull)
	if err != nil || after.Mode() != before.Mode() {
		t.Errorf("%s was %v, is %v, %v", os.DevNull, before.Mode(), after.Mode(), err)
	}
}

func TestPace_saysShortTimes(t *testing.T) {
	for _, c := range []struct {
		virtual, own time.Duration
		want         string
	}{
		{300 * time.Millisecond, 41_200 * time.Microsecond, "0.3 s of virtual time took 0.041 s, 7.3 times as fast as real time."},
		{32 * time.Second, 4130 * time.Millisecond, "32 s of virtual time took 4.1 s, 7.7 times as fast as real time."},
		{1500 * time.Millisecond, 60 * time.Second, "1.5 s of virtual time took 60 s, 0.025 times as fast as real time."},
	} {
		if got := pace(c.virtual, c.own); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// failingBed is a fabric in which one row cannot be measured.
type failingBed struct {
	links int
	row   string
}

func (failingBed) Kind() string               { return "nowhere" }
func (failingBed) Supports(testbed.Row) error { return nil }
func (failingBed) Close() error               { return nil }

func (b failingBed) run(_ context.Context, row testbed.Row, s []permutation.Stream, _ permutation.Load) (permutation.Result, error) {
	if row.Name == b.row || b.row == "" {
		return permutation.Result{}, errors.New("nobody answers")
	}
	return permutation.Result{Mbit: make([]float64, len(s)), RTTMicros: []float64{1}, Elapsed: time.Second,
		IdlePercent: -1, Counters: testbed.Counters{Links: make([]testbed.LinkBytes, b.links)}}, nil
}

// A row that fails is left out, with the reason, and takes nothing away from the others. If all do,
// the demo fails.
func TestDemo_aRowFails(t *testing.T) {
	top, err := topology.Parse("leaf-spine:leaves=2,spines=2,hosts=1")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := testbed.Select([]string{"rb", "rrb", "drb"})
	if err != nil {
		t.Fatal(err)
	}
	measured := func(bed demoBed) (names []string, notes string, err error) {
		var said bytes.Buffer
		d := demo{options: demoOptions{permutations: 1, rate: 8, fabric: "netns"}, topology: computedFabric{top}, ideals: []float64{1},
			progress: newProgress(t.Context(), ""), stderr: &said, bed: bed}
		defer d.progress.end()
		d.progress.plan(d.weights(rows)...)
		err = d.measureAll(t.Context(), rows)
		for _, o := range d.outcomes {
			names = append(names, o.Name)
		}
		return names, said.String(), err
	}
	names, notes, err := measured(failingBed{top.NumLinks(), "rrb"})
	if err != nil || !slices.Equal(names, []string{"rb", "drb"}) || !strings.Contains(notes, "rrb is left out: nobody answers") {
		t.Errorf("%q, %v:\n%s", names, err, notes)
	}
	if names, notes, err := measured(failingBed{}); err == nil || !strings.Contains(err.Error(), "drb: nobody answers") {
		t.Errorf("all rows fail: %q, %v:\n%s", names, err, notes)
	}
}
