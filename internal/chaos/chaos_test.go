package chaos

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/topology"
)

func parse(t testing.TB, spec string) *topology.Topology {
	t.Helper()
	top, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

func sequence(t testing.TB, c Config) []Event {
	t.Helper()
	events, err := Sequence(c)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func configs(t *testing.T) map[string]Config {
	all := make(map[string]Config)
	for _, spec := range []string{"fat-tree:k=4", "fat-tree:k=6", "leaf-spine:leaves=4,spines=3,hosts=1", "vl2:d0=2,d1=4,d2=4,hosts=1"} {
		for seed := range uint64(5) {
			all[fmt.Sprintf("%s seed %d", spec, seed)] = Config{Topology: parse(t, spec), Seed: seed, Duration: time.Minute,
				AtOnce: 1 + int(seed), Switches: DefaultSwitches, Silences: DefaultSilences, Flaps: DefaultFlaps}
		}
	}
	return all
}

// What is said of a sequence is checked by playing it, with a count of the
// failures that cover each link.
func TestSequence_keepsItsPromises(t *testing.T) {
	for name, c := range configs(t) {
		t.Run(name, func(t *testing.T) {
			failed := make(map[string]bool)
			cover := make(map[topology.LinkID]int)
			var last time.Duration
			for _, e := range sequence(t, c) {
				if e.At < last || e.At > c.Duration {
					t.Fatalf("%v: after %v, of %v", e, last, c.Duration)
				}
				last = e.At
				if failed[e.Target] != e.Heals() {
					t.Fatalf("%v: failed before: %v", e, failed[e.Target])
				}
				change := 1
				if e.Heals() {
					change = -1
					delete(failed, e.Target)
				} else {
					failed[e.Target] = true
				}
				for _, l := range e.Links {
					if cover[l] += change; cover[l] == 0 {
						delete(cover, l)
					}
				}
				if len(failed) > c.AtOnce {
					t.Fatalf("%v: %d failed at once, %v", e, len(failed), failed)
				}
				wantConnected(t, c.Topology, cover, e)
			}
			if len(failed) > 0 || len(cover) > 0 {
				t.Errorf("in the end %v are failed", failed)
			}
		})
	}
}

// wantConnected looks for a way between each two edge switches over live links.
func wantConnected(t *testing.T, top *topology.Topology, down map[topology.LinkID]int, e Event) {
	t.Helper()
	var racks []topology.Node // a host of each
	for h := range top.Hosts() {
		if len(racks) == 0 || top.EdgeOf(h.ID) != top.EdgeOf(racks[len(racks)-1].ID) {
			racks = append(racks, h)
		}
	}
	for i, src := range racks {
		for _, dst := range racks[:i] {
			p := top.Paths(src.ID, dst.ID)
			ok := p.Direct()
			for _, n := range p.Live {
				ok = ok || !slices.ContainsFunc(p.Path(n).Links, func(l topology.LinkID) bool { return down[l] > 0 })
			}
			if !ok {
				t.Fatalf("%v: %s and %s are cut off", e, src.Name, dst.Name)
			}
		}
	}
}

func TestSequence_isTheSeeds(t *testing.T) {
	c := Config{Topology: parse(t, "fat-tree:k=4"), Seed: 1, Duration: time.Minute, Switches: DefaultSwitches, Silences: DefaultSilences, Flaps: DefaultFlaps}
	one := fmt.Sprint(sequence(t, c))
	if two := fmt.Sprint(sequence(t, c)); one != two {
		t.Error("the same seed gives other events")
	}
	c.Seed = 2
	if two := fmt.Sprint(sequence(t, c)); one == two {
		t.Error("another seed gives the same events")
	}
}

// All that may happen does, in about the measure asked for.
func TestSequence_hasEverything(t *testing.T) {
	c := Config{Topology: parse(t, "fat-tree:k=4"), Seed: 3, Duration: time.Hour, AtOnce: 3, Switches: DefaultSwitches, Silences: DefaultSilences, Flaps: DefaultFlaps}
	seen := make(map[string]int)
	for _, e := range sequence(t, c) {
		if e.Heals() {
			continue
		}
		seen[string(e.Mode)]++
		seen["failures"]++
		if !strings.Contains(e.Target, "-") {
			seen["switches"]++
		}
		if strings.HasPrefix(e.Target, "h") {
			t.Errorf("%v: a host's own link", e)
		}
	}
	n := float64(seen["failures"])
	if n < 3000 {
		t.Errorf("%d failures in an hour, two a second wanted", seen["failures"])
	}
	for what, share := range map[string]float64{"switches": 0.2, string(Loud): 0.6, string(Silent): 0.2, string(SilentData): 0.2} {
		if got := float64(seen[what]) / n; got < share/2 || got > share*1.5 {
			t.Errorf("a share of %.2f is %s, want about %.2f: %v", got, what, share, seen)
		}
	}
}

func TestSequence_bad(t *testing.T) {
	top := parse(t, "fat-tree:k=4")
	for want, c := range map[string]Config{
		"Topology":          {Duration: time.Second},
		"duration 0s":       {Topology: top},
		"at most -1":        {Topology: top, Duration: time.Second, AtOnce: -1},
		"share of silences": {Topology: top, Duration: time.Second, Silences: 1.5},
	} {
		if _, err := Sequence(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
}
