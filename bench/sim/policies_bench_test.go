package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"weft/bench/sim/tcp"
	"weft/policy"
	"weft/resequencer"
	"weft/topology"
)

// fabricsOfPolicies are those in which BenchmarkPolicies compares: 128 hosts, 16 paths from
// rack to rack.
var fabricsOfPolicies = []struct {
	name   string
	slow   string // links that are slower than everybody takes them to be
	failed string // a link that dies, of which nobody is told
}{
	{"even", "", ""},
	{"slow", ",e0.0-a0.4=250,e3.1-a3.6=250,a5.5-c2.2=250", ""},
	{"dead", "", "e0.0-a0.4"},
}

// settingOfPolicies has every host send to another one, without end, by DCTCP.
func settingOfPolicies(t testing.TB, name string, seed uint64, slow, failed string) Config {
	const even = "fat-tree:k=8" + rates
	known := parse(t, even)
	c := Config{
		Topology: parse(t, even+slow), Known: known, Seed: seed, Policy: name,
		Duration: 110 * time.Millisecond, Warmup: 30 * time.Millisecond,
		Delay:       5 * time.Microsecond,
		Queues:      []Queue{{Bytes: 128 << 10, ECNBytes: 30 << 10}},
		Resequencer: &resequencer.Config{},
		TCP:         tcp.Config{DCTCP: true},
		Workload:    permutation(known, seed, 0),
	}
	if failed != "" {
		l, err := known.LinkByName(failed)
		if err != nil {
			t.Fatal(err)
		}
		c.Failures = []Failure{{At: 10 * time.Millisecond, Links: []topology.LinkID{l.ID}, Told: time.Hour}}
	}
	return c
}

// shares are the goodput of all hosts together and of the worst one, in % of their links'.
func shares(c Config, r *Result) (mean, worst float64) {
	link := (r.End - c.Warmup).Seconds() * c.Topology.Rate(0) * 1e6 / 8 * 1460 / 1500
	worst = float64(slices.Min(r.DeliveredBytes)) / link * 100
	return goodput(c, r) / 1e6 / c.Topology.Rate(0) * 1500 / 1460 * 100, worst
}

// BenchmarkPolicies compares all policies of the table: see docs/policies.md.
func BenchmarkPolicies(b *testing.B) {
	for _, f := range fabricsOfPolicies {
		for _, name := range policy.Names() {
			for seed := range uint64(3) {
				b.Run(fmt.Sprintf("%s/%s/seed=%d", f.name, name, seed+1), func(b *testing.B) {
					for b.Loop() {
						c := settingOfPolicies(b, name, seed+1, f.slow, f.failed)
						r := run(b, c)
						mean, worst := shares(c, r)
						b.ReportMetric(mean, "goodput-%")
						b.ReportMetric(worst, "worst-%")
						b.ReportMetric(float64(r.Retransmits), "resent")
						b.ReportMetric(float64(r.Timeouts), "timeouts")
						b.ReportMetric(r.Latency.Mean()/1e3, "latency-µs")
					}
				})
			}
		}
	}
}

// TestKnown: hosts spread by what they take rates to be, ports are as fast as links are.
func TestKnown(t *testing.T) {
	share := func(knows bool) float64 {
		c := settingOfPolicies(t, "drb", 1, ",e0.0-a0.4=250", "")
		c.Duration, c.Warmup = 20*time.Millisecond, 5*time.Millisecond
		if knows {
			c.Known = nil
		}
		r := run(t, c)
		l, err := c.Topology.LinkByName("e0.0-a0.4")
		if err != nil {
			t.Fatal(err)
		}
		sum := int64(0)
		for i := range topology.LinkID(4) {
			sum += r.Ports[2*(l.ID+i)].Bytes
		}
		return float64(r.Ports[2*l.ID].Bytes) / float64(sum)
	}
	near(t, "share of a slow link, known", share(true), 0.25/3.25, 0.1)
	near(t, "share of a slow link, not known", share(false), 0.25, 0.1)
	c := settingOfPolicies(t, "drb", 1, "", "")
	c.Known = parse(t, "fat-tree:k=4"+rates)
	if _, err := Run(c); err == nil {
		t.Error("Known may be another fabric")
	}
}
