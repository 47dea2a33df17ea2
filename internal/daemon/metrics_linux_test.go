package daemon

import (
	"fmt"
	"slices"
	"testing"
	"time"

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

// A scrape says what is blamed, and where super-segments are cut, as the status does.
func TestCollector_blame(t *testing.T) {
	w := newAutoWorld(t, "policy: drb\n")
	w.d.views.keep = time.Nanosecond
	top := w.d.topology
	self, ok := top.ByAddr(w.d.place.address)
	if !ok || self != 0 {
		t.Fatalf("the host is node %d, %v", self, ok)
	}
	var to []string
	var bad string
	for rack := range top.Racks() {
		if rack == top.EdgeOf(self) {
			continue
		}
		to = append(to, top.Node(top.FirstHost(rack)).Addr.String())
		_, down := top.PathsOrAll(self, rack).Halves(0)
		bad = top.LinkName(down[0])
	}
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(w.d.collector())
	// series lists those of a metric, with its value.
	series := func(name string) (list []string) {
		t.Helper()
		all, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range all {
			for _, m := range f.Metric {
				if f.GetName() != name {
					continue
				}
				s := fmt.Sprintf("%.2g", m.GetGauge().GetValue())
				for _, l := range m.Label {
					s += " " + l.GetValue()
				}
				list = append(list, s)
			}
		}
		return list
	}
	for _, c := range []struct {
		loss map[string]float32
		want []string
	}{{nil, nil}, {map[string]float32{bad: 0.05}, []string{"0.05  link " + bad}}} {
		p := newFakeProber(w.d.place.address, seenBy(t, top, to, c.loss)...)
		close(p.let)
		w.followers[0].probes.used = p
		if got := series("weft_blamed_loss_ratio"); !slices.Equal(got, c.want) {
			t.Errorf("%v: blamed are %q, want %q", c.loss, got, c.want)
		}
		if got, want := series("weft_blamed_places"), fmt.Sprintf("[0 host %d link 0 switch]", len(c.want)); fmt.Sprint(got) != want {
			t.Errorf("%v: %v, want %v", c.loss, got, want)
		}
	}
	for _, c := range []struct{ why, want string }{{"", "[1]"}, {"no macvlan", "[0]"}} {
		w.uncut = c.why
		if got := fmt.Sprint(series("weft_late_cut_active")); got != c.want {
			t.Errorf("uncut %q: active is %s, want %s", c.why, got, c.want)
		}
	}
}
