package metrics

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"weft/internal/dataplane"
	"weft/internal/histogram"
	"weft/internal/probe"
	"weft/liveness"
	"weft/resequencer"
	"weft/topology"
)

// fakePaths are n ways up, and a path to a host of each of m racks.
func fakePaths(n, m int) (list []liveness.PathHealth) {
	for i := range n {
		p := liveness.PathHealth{Via: netip.AddrFrom4([4]byte{10, 9, byte(i >> 8), byte(i)}), State: states[i%len(states)], RTT: time.Millisecond, Loss: 0.25, Tally: &liveness.Tally{Missed: 3, Lost: 2}}
		p.Tally.RTT.Observe(time.Millisecond)
		p.Tally.RTT.Observe(time.Hour)
		list = append(list, p)
	}
	for i := range m {
		list = append(list, liveness.PathHealth{Dst: netip.AddrFrom4([4]byte{10, 1, byte(i), 2}), Rack: fmt.Sprintf("e%d.0", i), State: states[i%len(states)]})
	}
	return list
}

// someCarriage is of a host of which nothing is proved yet.
func someCarriage() *liveness.Carriage {
	t, err := topology.FatTree(4)
	if err != nil {
		panic(err)
	}
	w, err := liveness.New(liveness.Config{Topology: t, Address: t.Node(0).Addr})
	if err != nil {
		panic(err)
	}
	return w.Carriage()
}

// everything writes all metrics of hosts.
func everything(ways, racks int) prometheus.Collector {
	return Collector(func(w Writer) {
		w.Egress(dataplane.EgressStats{Encapsulated: 1}, dataplane.EgressStats{Encapsulated: 2})
		w.Ingress(dataplane.IngressStats{})
		w.Tunnel(dataplane.TunnelStats{})
		w.Resequencer("tcp", resequencer.Stats{})
		w.Resequencer("datagrams", resequencer.Stats{})
		w.Evidence(dataplane.EvidenceStats{})
		w.Probes(probe.Stats{}, probe.Stats{})
		w.TCP(1, 2, 3, 4, 5)
		w.Paths(fakePaths(ways, racks), func(int) string { return "" })
		w.Carriage(nil, someCarriage())
		var sent []Sent
		for _, p := range fakePaths(ways, 0) {
			sent = append(sent, Sent{Via: p.Via, Packets: 1, Bytes: 10}, Sent{Via: p.Via, Packets: 2, Bytes: 20})
		}
		w.Sent(append(sent, Sent{Packets: 5}))
		w.Host(Host{Mode: "offload\xff", Uplinks: []Uplink{{"eth0", "e0.0", true}}, Drops: map[string]uint64{"tun": 1}})
		w.Spray(Outcomes{"encapsulated": 1}, 1, 2)
		w.Order(Outcomes{"straight": 1})
		w.QCN(Outcomes{"believed": 1}, 1)
		w.Updates(Updates{Rejected: map[string]uint64{"forged": 1}})
		w.Blame([]Blamed{{Places: []string{"a0.2-c1.1"}, Kinds: []string{"link"}, Loss: 0.02}})
		w.LateCut(true)
		w.Mesh(Mesh{Peers: 3, Lingering: 1, Registered: true})
	})
}

// agent writes all metrics of a switch.
func agent() prometheus.Collector {
	return Collector(func(w Writer) {
		w.Updates(Updates{Rejected: map[string]uint64{"forged": 1}, Heard: -1})
		w.Switch(Switch{Neighbours: []Neighbour{{Port: "p0"}}})
		w.Scheduler(Scheduler{Rejected: map[string]uint64{"mac": 1}, Refused: map[string]uint64{"rate": 1}})
		w.Port(Port{Name: "p0"})
		w.Balanced(Outcomes{"chosen": 1})
		w.Decap("edge", Outcomes{"nested": 1})
		w.Told(Outcomes{"told": 1})
	})
}

func gathered(t *testing.T, c prometheus.Collector) *prometheus.Registry {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(c); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestMetrics_lint(t *testing.T) {
	seen := make(map[string]bool)
	for _, c := range []prometheus.Collector{everything(3, 3), agent()} {
		all, err := gathered(t, c).Gather()
		if err != nil {
			t.Fatal(err)
		}
		problems, err := promlint.NewWithMetricFamilies(all).Lint()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
		for _, f := range all {
			seen[f.GetName()] = true
		}
	}
	for _, name := range Names() {
		if !seen[name] {
			t.Errorf("%s is declared and never written", name)
		}
	}
}

// text is what /metrics answers.
func text(t *testing.T, c prometheus.Collector) string {
	t.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(gathered(t, c), promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// promtool runs it, if it is installed, and returns what it complains about.
func promtool(t *testing.T, stdin string, args ...string) {
	t.Helper()
	program, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (Debian: apt-get install prometheus)")
	}
	cmd := exec.Command(program, args...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %v: %v\n%s", args, err, out)
	}
}

func TestMetrics_promtool(t *testing.T) {
	promtool(t, text(t, everything(3, 3)), "check", "metrics")
	promtool(t, text(t, agent()), "check", "metrics")
}

// A fabric of a thousand bouncing switches has as many series as one of MaxPaths, and loses no
// count.
func TestMetrics_boundedSeries(t *testing.T) {
	series := func(ways, racks int) int {
		n := 0
		all, err := gathered(t, everything(ways, racks)).Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range all {
			n += len(f.GetMetric())
		}
		return n
	}
	most := series(MaxPaths+1, MaxRacks+1)
	if n := series(1000, 250); n > most {
		t.Errorf("%d series, want at most %d", n, most)
	}
	if n := series(MaxPaths/2, MaxRacks/2); n >= most {
		t.Errorf("half as many have %d series, and all %d", n, most)
	}
	out := text(t, everything(1000, 250))
	for _, want := range []string{
		fmt.Sprintf("\nweft_path_probes_missed_total{uplink=\"\",via=\"other\"} %d\n", 3*(1000-MaxPaths)),
		fmt.Sprintf("\nweft_path_sent_packets_total{uplink=\"\",via=\"other\"} %d\n", 3*(1000-MaxPaths)+5),
		fmt.Sprintf("\nweft_path_rtt_seconds_count{uplink=\"\",via=\"other\"} %d\n", 2*(1000-MaxPaths)),
		"\nweft_rack_paths{rack=\"other\",state=\"up\"} 42\n", // of 250 racks a sixth is up, none of them among the worst
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s", want)
		}
	}
}

// Several may scrape at a time.
func TestCollector_concurrentScrapes(t *testing.T) {
	r := gathered(t, everything(10, 5))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 5 {
				if _, err := r.Gather(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// The exported buckets are cumulative and in seconds.
func TestWriter_histogram(t *testing.T) {
	var h histogram.Histogram
	for _, d := range []time.Duration{1, histogram.First, histogram.First + 1, time.Hour} {
		h.Observe(d)
	}
	out := text(t, Collector(func(w Writer) { w.histogram(pathRTT, &h, "10.9.0.1", "") }))
	for _, want := range []string{"le=\"8.192e-06\"} 2", "le=\"1.6384e-05\"} 3", "le=\"0.268435456\"} 3", "le=\"+Inf\"} 4", "_count{uplink=\"\",via=\"10.9.0.1\"} 4"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
}

func BenchmarkScrape(b *testing.B) {
	r := prometheus.NewRegistry()
	r.MustRegister(everything(64, 20))
	h := promhttp.HandlerFor(r, promhttp.HandlerOpts{})
	b.ReportAllocs()
	for b.Loop() {
		w := httptest.NewRecorder()
		w.Body = bytes.NewBuffer(make([]byte, 0, 1<<20))
		h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	}
}
