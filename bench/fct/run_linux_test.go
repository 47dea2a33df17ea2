package fct

import (
	"context"
	"os"
	"testing"
	"time"

	"weft/bench/sim/workload"
	"weft/bench/testbed"
	"weft/internal/kernel/kerneltest"
	"weft/lab"
	"weft/topology"
)

// No flow is faster than ideal says, however busy the machine is: the links are those that it
// is about.
func TestIdeal_isTheLeastInALab(t *testing.T) {
	needsLab(t)
	top := parse(t, "leaf-spine:leaves=2,spines=2,hosts=1")
	bed, err := testbed.InNamespaces(t.Context(), kerneltest.LabName("i"), testbed.Config{Topology: top, RateMbit: 5, Seed: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := bed.Close(); err != nil {
			t.Error(err)
		}
	}()
	s, err := bed.Start(t.Context(), plainHosts())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, bytes := range []int64{5_000, 40_000} {
		least := time.Hour
		for range 5 {
			all, broken, err := play(t.Context(), s, plan{flows: []workload.Flow{{Dst: 1, Bytes: bytes}}}, time.Minute, nil)
			if err != nil || broken != nil || !all[0].finished {
				t.Fatal(all, broken, err)
			}
			least = min(least, all[0].took)
		}
		t.Logf("%d bytes take %v at least, ideal %v and two round trips", bytes, least, ideal(bytes, 5, 0))
		if least < ideal(bytes, 5, 0) {
			t.Errorf("%d bytes took %v, the ideal without round trips is %v", bytes, least, ideal(bytes, 5, 0))
		}
	}
}

func needsLab(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: builds a lab of network namespaces")
	}
	if err := testbed.CanUseNamespaces(); err != nil {
		t.Skip(err)
	}
}

// Flows of four kinds of rows cross labs. No figure of a busy machine is asserted, but
// nothing is faster than a flow alone.
func TestRun_inALab(t *testing.T) {
	needsLab(t)
	top := parse(t, "leaf-spine:leaves=2,spines=2,hosts=2")
	rows, err := Select([]string{"kernel-ecmp", "kernel-drb", "drb", "switch-drill"})
	if err != nil {
		t.Fatal(err)
	}
	labs := make(map[string]*lab.Lab) // by rule
	o := Options{Topology: top, RateMbit: 10, Rows: rows, Workload: "websearch_dctcp", Scale: 0.02, Traffic: "random",
		Loads: []float64{0.3}, Seed: 1, Seeds: 1, Duration: 500 * time.Millisecond, Drain: time.Minute, Machine: "this",
		Open: func(ctx context.Context, f Fabric) (testbed.Testbed, error) {
			balance := f.Balance
			name := map[string]string{"": "r", "drill": "d"}[balance]
			l, err := lab.Hold(ctx, lab.Config{Name: kerneltest.LabName(name), Topology: top, RateMbit: 10, Balance: balance})
			if err != nil {
				return nil, err
			}
			t.Cleanup(func() {
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			})
			labs[balance] = l
			return testbed.OnLab(l, testbed.Config{Topology: top, RateMbit: 10, Seed: 1, Balance: balance}), nil
		},
		Note: func(s string) { t.Log(s) },
	}
	results, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != len(rows)*len(sizeClasses) || len(labs) != 2 {
		t.Fatalf("%d results on %d labs", len(results), len(labs))
	}
	// The switches of the row's lab have balanced, those of the others have not.
	for balance, l := range labs {
		for n := range top.Nodes() {
			if n.Layer != topology.LayerEdge {
				continue
			}
			s, err := l.Balanced(n.ID)
			if err != nil || (s != nil) != (balance != "") || s != nil && s.Chosen == 0 {
				t.Errorf("rule %q: %s has balanced %+v, %v", balance, n.Name, s, err)
			}
		}
	}
	flows := results[0].Flows
	for i, r := range results {
		t.Logf("%+v", r)
		if r.Policy != rows[i/3].Name || r.Where != rows[i/3].Where || r.SizeClass != sizeClasses[i%3] || r.Machine != "this" {
			t.Errorf("%+v", r)
		}
		if counted := r.SYNRetransmits >= 0 && r.Timeouts >= 0; counted != rows[i/3].Hosts.Kernel {
			t.Errorf("%s: %g SYNs again, %g timeouts", r.Policy, r.SYNRetransmits, r.Timeouts)
		}
		if r.SizeClass == "all" && (r.Flows != flows || flows == 0 || r.Unfinished != 0) {
			t.Errorf("%s: %d flows, %d unfinished; the first row has %d", r.Policy, r.Flows, r.Unfinished, flows)
		}
		if r.Flows > 0 && (r.SlowdownP50 < 0.5 || r.MaxMs < r.P50Ms || r.P50Ms <= 0) || r.Error != "" || r.SlowdownBase != labBase || r.BaseByteMs != results[0].BaseByteMs {
			t.Errorf("%+v", r)
		}
	}
}
