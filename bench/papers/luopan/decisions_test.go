package luopan

import (
	"reflect"
	"testing"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/bench/sim/workload"
)

// The age of samples is luopan's alone, and goes with the samples and the expiry of its row.
func TestAgeOfSamples_changesLuopanAlone(t *testing.T) {
	ages := map[string]time.Duration{"timeless": 0, "20µs": 20 * time.Microsecond, "40µs": 40 * time.Microsecond, "100µs": 100 * time.Microsecond}
	for _, v := range ageOfSamples().Values {
		age, ok := ages[v.Name]
		if !ok {
			t.Errorf("%s is no age that was asked for", v.Name)
		}
		delete(ages, v.Name)
		top, _ := fatTree(4, oversub)
		for _, scheme := range []string{luopanScheme, presto, random, localScheme, timeless} {
			tr := trial{top: top, scheme: scheme, arrivals: time.Millisecond, source: noFlows}
			if scheme == luopanScheme {
				tr.tune = func(c *sim.Config) { c.Options.Samples, c.Options.Expiry = 9, 10*time.Microsecond }
			}
			c, err := tr.config(1, nil)
			if err != nil {
				t.Fatal(err)
			}
			was := c
			v.Tune(&c)
			if scheme != luopanScheme {
				if !reflect.DeepEqual(c.Spray, was.Spray) || c.Policy != was.Policy || c.Options != was.Options {
					t.Errorf("%s: %s becomes %s, %+v", v.Name, scheme, c.Policy, c.Spray)
				}
				continue
			}
			if c.Policy != timeless || c.Spray.SampleAge != age || c.Spray.DrillSamples != 9 || c.Options.Expiry != 10*time.Microsecond || !c.AckUnits {
				t.Errorf("%s: luopan becomes %s, %+v, %+v", v.Name, c.Policy, c.Spray, c.Options)
			}
		}
	}
	if len(ages) > 0 {
		t.Errorf("nobody tries %v", ages)
	}
}

func noFlows(uint64) (workload.Source, error) { return workload.Merge(), nil }

// All experiments have all decisions, and so all of their values.
func TestExperiments_haveDecisions(t *testing.T) {
	all, err := papers.WithDecisions(Experiments())
	if err != nil {
		t.Fatal(err)
	}
	values := 0
	for _, d := range decisions() {
		values += len(d.Values)
	}
	if want := len(Experiments()) * (1 + values); len(all) != want {
		t.Errorf("%d subjects, want %d", len(all), want)
	}
}
