package metrics

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"weft/fabrictest"
	"weft/stack"
)

// Two Hosts of a program, told apart by a label, tell what they have sent and how the paths
// between them are.
func TestNewCollector(t *testing.T) {
	f, err := fabrictest.New("fat-tree:k=4", fabrictest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	hosts := make(map[string]*stack.Host)
	reg := prometheus.NewPedanticRegistry()
	for _, name := range []string{"h0.0.2", "h1.0.2"} {
		h, err := f.Host(name, stack.Config{Liveness: &stack.Liveness{}})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		hosts[name] = h
		prometheus.WrapRegistererWith(prometheus.Labels{"host": name}, reg).MustRegister(NewCollector(h))
	}
	l, err := hosts["h1.0.2"].Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			io.Copy(io.Discard, c)
			c.Close()
		}
	}()
	gather := func() []*dto.MetricFamily {
		t.Helper()
		all, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	sum := func(name string, labels ...string) (v float64) {
		t.Helper()
		for _, f := range gather() {
			if f.GetName() != name {
				continue
			}
			for _, m := range f.Metric {
				if !slices.ContainsFunc(labels, func(want string) bool {
					return !slices.ContainsFunc(m.Label, func(l *dto.LabelPair) bool { return l.GetName()+"="+l.GetValue() == want })
				}) {
					v += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
				}
			}
		}
		return v
	}
	proved := func() bool {
		return sum("weft_racks_plain", "host=h0.0.2") == 0 && sum("weft_path_rtt_seconds", "host=h0.0.2") > 0
	}
	for end := time.Now().Add(30 * time.Second); !proved(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no path is proved")
		}
	}
	c, err := hosts["h0.0.2"].DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, strings.Repeat("weft ", 200_000)); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if n := sum("weft_egress_packets_total", "host=h0.0.2", "as=carried"); n < 10 {
		t.Errorf("%v packets carried", n)
	}
	if a, b := sum("weft_path_sent_packets_total", "host=h0.0.2"), sum("weft_egress_packets_total", "host=h0.0.2", "as=carried"); a == 0 || b == 0 {
		t.Errorf("%v packets by paths, %v carried", a, b)
	}
	if n := sum("weft_racks", "host=h0.0.2"); n != 7 { // of 8, all but its own
		t.Errorf("%v racks, want 7", n)
	}
	if n := sum("weft_paths", "host=h0.0.2", "state=up"); n == 0 {
		t.Errorf("%v ways up, want some", n)
	}
	problems, err := promlint.NewWithMetricFamilies(gather()).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	// After Close it still answers.
	hosts["h0.0.2"].Close()
	if n := sum("weft_egress_packets_total", "host=h0.0.2", "as=carried"); n < 10 {
		t.Errorf("closed: %v packets carried", n)
	}
}
