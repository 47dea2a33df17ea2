package daemon

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"weft/internal/hostprog"
)

// A scrape says whether weft works, as the status does, and who else is at the uplink.
func TestCollector_asTheStatus(t *testing.T) {
	w := newAutoWorld(t, fast)
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(w.d.collector())
	gauge := func(name string) float64 {
		t.Helper()
		all, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		if problems, err := promlint.NewWithMetricFamilies(all).Lint(); err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
		for _, f := range all {
			if f.GetName() == name && len(f.Metric) == 1 {
				return f.Metric[0].GetGauge().GetValue()
			}
		}
		t.Fatalf("there is no %s, or more than one", name)
		return 0
	}
	if v := gauge("weft_host_working"); v != 1 {
		t.Errorf("working: %v", v)
	}
	w.d.mu.Lock()
	w.d.others = []hostprog.ForeignProgram{{}, {}}
	w.d.working = false
	w.d.mu.Unlock()
	if v := gauge("weft_host_working"); v != 0 {
		t.Errorf("out of the way, and working: %v", v)
	}
	if v := gauge("weft_foreign_programs"); v != 2 {
		t.Errorf("%v programs of others, want 2", v)
	}
}
