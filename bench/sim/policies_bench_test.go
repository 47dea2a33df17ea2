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
	// asItComes: nobody puts packets in order below TCP. Each is acknowledged at once, and
	// TCP takes nothing for lost but after a timeout.
	asItComes bool
}{
	{"even", "", "", false},
	{"slow", slowLinks, "", false},
	{"dead", "", "e0.0-a0.4", false},
	{"even-as-it-comes", "", "", true},
	{"slow-as-it-comes", slowLinks, "", true},
}

const slowLinks = ",e0.0-a0.4=250,e3.1-a3.6=250,a5.5-c2.2=250"

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

func asItComes(c *Config) {
	c.Resequencer, c.TCP.DupThresh = nil, 1000
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
						if f.asItComes {
							asItComes(&c)
						}
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

// REPS §4.4: where links are slow and nobody was told, recycled paths carry more than
// random ones, and the worst host gets more. That needs acknowledgements as packets come.
func TestRun_repsAvoidsWhatIsSlow(t *testing.T) {
	for seed := range uint64(2) {
		type outcome struct{ mean, worst float64 }
		got := make(map[string]outcome)
		for _, name := range []string{"reps", "rb", "drb"} {
			c := settingOfPolicies(t, name, seed+1, slowLinks, "")
			c.Duration = 60 * time.Millisecond
			asItComes(&c)
			var o outcome
			o.mean, o.worst = shares(c, run(t, c))
			got[name] = o
		}
		for _, name := range []string{"rb", "drb"} {
			if reps, other := got["reps"], got[name]; reps.mean < 1.1*other.mean || reps.worst < 1.4*other.worst {
				t.Errorf("seed %d: reps has %.1f %%, its worst host %.1f; %s has %.1f and %.1f", seed+1, reps.mean, reps.worst, name, other.mean, other.worst)
			}
		}
	}
}
