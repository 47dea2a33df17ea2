package main

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/bench/failover"
	"weft/internal/slowtest"
	"weft/topology"
)

func TestDemo_aSpineDies(t *testing.T) {
	slowtest.Unraced(t)
	if os.Geteuid() != 0 {
		t.Skip("needs root: builds labs of network namespaces")
	}
	page := filepath.Join(t.TempDir(), "report.html")
	out := mustWeft(t, "demo", "--json", "--name", "demospine", "--fabric", "netns", "--rate", "3", "--policies", "ecmp,drb",
		"--warmup", "0s", "--duration", "300ms", "--report", page)
	wantNoNamespaces(t, "demospine")
	var list []outcomeJSON
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if len(list) != 2 || len(list[0].Failover) != 0 || len(list[1].Failover) != 3 {
		t.Fatalf("want three results in drb's object:\n%s", out)
	}
	for i, want := range []failover.Result{{Kind: "seen", Agents: true}, {Kind: "silent", Agents: true}, {Kind: "silent"}} {
		r := list[1].Failover[i]
		if r.Kind != want.Kind || r.Agents != want.Agents || !r.Liveness || r.Repetitions != demoFailures {
			t.Errorf("%+v, want %+v", r, want)
		}
		if r.LostConnections != 0 {
			t.Errorf("%+v", r)
		}
		// On a busy machine a host may not get to say in time what it has found out.
		if r.NotClosed == r.Repetitions || r.GoodputBefore <= 0 || r.GoodputDuring <= 0 || r.GoodputAfter <= 0 {
			if r.CPUBound {
				t.Logf("the processors were idle %.0f %% of the time only: %+v", r.IdlePercent, r)
			} else {
				t.Errorf("%+v", r)
			}
		}
	}
	html, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"A spine dies", "silent, hosts find out alone", "connections lost"} {
		if !bytes.Contains(html, []byte(want)) {
			t.Errorf("the report does not say %q", want)
		}
	}
}

func demoOn(t *testing.T, spec, fabric string) *demo {
	t.Helper()
	top, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	o := demoOptions{rate: 8, permutations: 3, seed: 1, fabric: fabric}
	return &demo{options: o, topology: computedFabric{top}, ideals: idealsOf(computedFabric{top}, o), stderr: io.Discard}
}

// Where no spine can die, or none can be done without, the demo says so and goes on.
func TestFailSpines_leavesItselfOut(t *testing.T) {
	for _, c := range []struct{ spec, fabric, want string }{
		{"fat-tree:k=4", "memory", "needs network namespaces"},
		{"fat-tree:k=2", "netns", "one path"},
		{"leaf-spine:leaves=1,spines=4,hosts=2", "netns", "one path"},
	} {
		d := demoOn(t, c.spec, c.fabric)
		if err := d.failSpines(t.Context()); err != nil {
			t.Errorf("%s: %v", c.spec, err)
		}
		if len(d.notes) != 1 || !strings.Contains(d.notes[0], "is left out") || !strings.Contains(d.notes[0], c.want) {
			t.Errorf("%s: %q, want %q", c.spec, d.notes, c.want)
		}
		var table bytes.Buffer
		if err := d.failoverTable(&table); err != nil || table.Len() > 0 || d.failoverSection() != nil {
			t.Errorf("%s: shown is %q, %v", c.spec, table.String(), err)
		}
	}
}

// The results are found by who knows where to look in an array of policies.
func TestAddFailover_isOfDRB(t *testing.T) {
	for want, policies := range map[int][]string{0: {"drb", "ecmp"}, 1: {"ecmp", "drb", "rb"}, 2: {"ecmp", "rb", "presto"}} {
		d := demo{failover: []failover.Result{{Kind: "seen"}}}
		var all []outcomeJSON
		for _, p := range policies {
			all = append(all, outcomeJSON{Policy: p})
		}
		d.addFailover(all)
		for i, o := range all {
			if (o.Failover != nil) != (i == want) {
				t.Errorf("%v: %s has %v", policies, o.Policy, o.Failover)
			}
		}
	}
}

// A host's ideal is its link's rate unless racks have more hosts than uplinks.
func TestIdealMbit_ofOversubscribedFabrics(t *testing.T) {
	for _, c := range []struct {
		spec string
		part float64
		note string
	}{
		{"fat-tree:k=4", 1, "full rate of its link"},
		{"fat-tree:k=4,hosts=4", 0.5, "max-min fair"},
		{"leaf-spine:leaves=4,spines=4,hosts=2", 1, "full rate of its link"},
		{"leaf-spine:leaves=4,spines=2,hosts=8", 0.25, "max-min fair"},
	} {
		d := demoOn(t, c.spec, "memory")
		if got, want := d.idealMbit(), c.part*8*1448/1514; math.Abs(got-want) > 1e-6 {
			t.Errorf("%s: %v Mbit/s a host, want %v", c.spec, got, want)
		}
		if note := d.idealNote(); !strings.Contains(note, c.note) {
			t.Errorf("%s: %q, want %q", c.spec, note, c.note)
		}
	}
}
