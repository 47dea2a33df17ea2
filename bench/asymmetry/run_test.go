package asymmetry

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"weft/bench/testbed"
	"weft/encap"
	"weft/internal/slowtest"
)

func run(t *testing.T, o Options, policies ...string) []Result {
	t.Helper()
	var err error
	if o.Rows, err = testbed.Select(policies); err != nil {
		t.Fatal(err)
	}
	o.Seed = 1
	o.Complete()
	if err := o.Check(); err != nil {
		t.Fatal(err)
	}
	results, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// sound checks what any machine must give: this is no measurement. What stood in the queues
// when counting began is counted: the three queues of a path hold 60 ms each at 10 Mbit/s,
// and that is 23 % of the shortest run.
func sound(t *testing.T, r Result) {
	t.Helper()
	if r.PercentOfIdeal < 5 || r.PercentOfIdeal > 130 {
		t.Errorf("%s, %s: %.1f %% of ideal", r.Topology, r.Policy, r.PercentOfIdeal)
	}
	if r.Mice == 0 || r.MiceP50 <= 0 || r.MiceP99 < r.MiceP50 {
		t.Errorf("%s, %s: %d mice, p50 %.0f, p99 %.0f µs", r.Topology, r.Policy, r.Mice, r.MiceP50, r.MiceP99)
	}
	sum := 0.0
	for _, name := range []string{"P1", "P2", "P3", "P4"} {
		if r.SharePerPath[name] <= 0 {
			t.Errorf("%s, %s: nothing by %s", r.Topology, r.Policy, name)
		}
		sum += r.SharePerPath[name]
	}
	if math.Abs(sum-100) > 1e-6 {
		t.Errorf("%s, %s: shares %v", r.Topology, r.Policy, r.SharePerPath)
	}
	if r.BrokenFlows > 0 {
		t.Errorf("%s, %s: %d connections failed", r.Topology, r.Policy, r.BrokenFlows)
	}
}

func TestRun_everyScenarioInMemory(t *testing.T) {
	names := make(map[string]bool)
	for _, r := range run(t, Options{Memory: true, RateMbit: 10, Warmup: 200 * time.Millisecond, Duration: 800 * time.Millisecond}, "presto") {
		sound(t, r)
		names[r.Topology] = true
		// Presto goes round the paths, or round them as they weigh.
		first := r.SharePerPath["P1"]
		if told := r.Topology == "slow-link-told"; told && (first < 3 || first > 15) || !told && (first < 15 || first > 35) {
			t.Errorf("%s: %.1f %% by P1", r.Topology, first)
		}
		if r.Probing != nil {
			t.Errorf("%s: presto probes", r.Topology)
		}
	}
	if len(names) != len(Scenarios()) {
		t.Errorf("scenarios %v", names)
	}
}

func TestRun_luopanLeavesTheSlowLinkAndCountsItsProbes(t *testing.T) {
	scenarios, err := SelectScenarios([]string{"slow-link"})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Scenarios: scenarios, Memory: true, RateMbit: 10, Warmup: 500 * time.Millisecond, Duration: time.Second}
	for _, carrier := range []encap.Carrier{encap.CarrierIPIP, encap.CarrierSRv6} {
		o.Carrier = carrier
		r := run(t, o, "luopan")[0]
		sound(t, r)
		if r.SharePerPath["P1"] > 20 {
			t.Errorf("%v: %.1f %% by the path with a thirteenth of the capacity", carrier, r.SharePerPath["P1"])
		}
		p := r.Probing
		if p == nil {
			t.Fatalf("%v: no probes", carrier)
		}
		// Rounds under way at both ends make a difference of some probes.
		if p.Probes == 0 || math.Abs(p.MeasuredPercent/p.FormulaPercent-1) > 0.2 {
			t.Errorf("%v: probing %+v", carrier, *p)
		}
		if each := int(p.Bytes / p.Probes); each != encap.SampleLen+carrier.Overhead()+14 {
			t.Errorf("%v: a probe takes %d bytes", carrier, each)
		}
		if p.Metric != "queue" {
			t.Errorf("%v: metric %q with switches that measure", carrier, p.Metric)
		}
	}
}

func TestRun_inNamespaces(t *testing.T) {
	slowtest.System(t)
	if os.Geteuid() != 0 {
		t.Skip("needs root: builds a lab of network namespaces")
	}
	if err := testbed.CanUseNamespaces(); err != nil {
		t.Skip(err)
	}
	scenarios, _ := SelectScenarios([]string{"link-down"})
	o := Options{Scenarios: scenarios, Lab: "asymtest", RateMbit: 5, Hosts: 2, Warmup: 500 * time.Millisecond, Duration: time.Second}
	for _, r := range run(t, o, "luopan") {
		sound(t, r)
	}
}

func TestRun_stopsWhenTold(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	rows, _ := testbed.Select([]string{"rand"})
	o := Options{Rows: rows, Memory: true, RateMbit: 5, Hosts: 1, Duration: time.Minute, Seed: 1}
	o.Complete()
	if _, err := Run(ctx, o); err == nil || ctx.Err() == nil {
		t.Errorf("error %v", err)
	}
}

func TestResult_fieldsOfItsJSON(t *testing.T) {
	b, err := json.Marshal(Result{SharePerPath: shares([]uint64{1, 1, 1, 1}), Probing: &Probing{}})
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"topology", "policy", "percent_of_ideal", "mice_p99_us", "share_per_path", "mice_p50_us",
		"goodput_mbit", "flows", "retransmits", "idle_percent", "encap", "seed", "measured_percent", "formula_percent"} {
		if !strings.Contains(string(b), `"`+field+`":`) {
			t.Errorf("no %s in %s", field, b)
		}
	}
	if !strings.Contains(string(b), `"share_per_path":{"P1":25,"P2":25,"P3":25,"P4":25}`) {
		t.Errorf("%s", b)
	}
}

func TestShares(t *testing.T) {
	got := shares([]uint64{428, 187, 191, 194})
	for name, want := range map[string]float64{"P1": 42.8, "P2": 18.7, "P3": 19.1, "P4": 19.4} { // Luopan, Table 1
		if math.Abs(got[name]-want) > 1e-9 {
			t.Errorf("%s: %v", name, got[name])
		}
	}
	for name, v := range shares([]uint64{0, 0}) {
		if v != 0 {
			t.Errorf("of nothing, %s has %v", name, v)
		}
	}
}

func TestUplinks_areOfT2(t *testing.T) {
	for _, s := range Scenarios() {
		real, known, err := s.fabric(3, 10)
		if err != nil {
			t.Fatal(err)
		}
		for i, l := range uplinks(real) {
			if want := "e0.1-a0." + string(rune('0'+i)); real.LinkName(l) != want {
				t.Errorf("%s: %s is %s, want %s", s.Name, pathName(i), real.LinkName(l), want)
			}
		}
		slow, _ := real.LinkByName(linkA1T3)
		if told := known.Rate(slow.ID) != 0; told != s.Told {
			t.Errorf("%s: hosts are told %v Mbit/s", s.Name, known.Rate(slow.ID))
		}
		if dead, _ := real.LinkByName(linkA1T1); real.Live(dead.ID) != (s.Name != "link-down") || known.Live(dead.ID) != real.Live(dead.ID) {
			t.Errorf("%s: %s is live: %v, hosts know: %v", s.Name, linkA1T1, real.Live(dead.ID), known.Live(dead.ID))
		}
	}
}

func TestStreams_loadReceiversAlike(t *testing.T) {
	real, _, err := Scenarios()[0].fabric(4, 10)
	if err != nil {
		t.Fatal(err)
	}
	in := make(map[string]int)
	for _, s := range streams(real, 3) {
		in[real.Node(s.to).Name]++
	}
	if len(in) != 4 {
		t.Errorf("receivers %v", in)
	}
	for name, n := range in {
		if n != 6 || !strings.HasPrefix(name, "h0.2.") {
			t.Errorf("%s receives %d streams", name, n)
		}
	}
}
