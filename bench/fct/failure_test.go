package fct

import (
	"strings"
	"testing"

	"weft/topology"
)

func TestFailure_isInTheFabric(t *testing.T) {
	for _, spec := range []string{"leaf-spine:leaves=2,spines=2,hosts=2", "fat-tree:k=4", "fat-tree:k=4,core-rate=7", "leaf-spine:leaves=2,spines=2,hosts=2,host-rate=40,fabric-rate=20"} {
		o := Options{Topology: parse(t, spec), RateMbit: 10}
		name := o.Topology.LinkName(topology.LinkID(o.Topology.NumHosts() + 1))
		link, err := o.Topology.LinkByName(name)
		if err != nil {
			t.Fatal(err)
		}
		had := o.Topology.Rate(link.ID)
		if had == 0 {
			had = 10
		}
		for failure, want := range map[string]float64{"": had, "symmetric": had, "slow-link(" + name + ",0.5)": had / 2, "slow-link(" + name + ")": had / 4, "link-down(" + name + ")": 0} {
			o.Failure = failure
			real, known, err := o.WithFailure()
			if err != nil {
				t.Fatalf("%s, %q: %v", spec, failure, err)
			}
			if want == 0 {
				if real.Live(link.ID) || known.Live(link.ID) || len(real.Down()) != 1 {
					t.Errorf("%s, %s: the link is up, or others are down", spec, failure)
				}
				continue
			}
			rated, err := withRates(real, o.RateMbit)
			if err != nil {
				t.Fatal(err)
			}
			for l := range rated.Links() {
				if l.ID == link.ID && rated.Rate(l.ID) != want || rated.Rate(l.ID) == 0 || !rated.Live(l.ID) || known.Rate(l.ID) != o.Topology.Rate(l.ID) {
					t.Errorf("%s, %q: link %s has %g Mbit/s", spec, failure, rated.LinkName(l.ID), rated.Rate(l.ID))
				}
			}
		}
	}
}

func TestParseFailure(t *testing.T) {
	top := parse(t, "leaf-spine:leaves=2,spines=2,hosts=2")
	for s, want := range map[string]string{"": "symmetric", "symmetric": "symmetric", "link-down": "link-down(e0.0-a0.0)", "link-down(a0.1-e0.1)": "link-down(e0.1-a0.1)", "slow-link": "slow-link(e0.0-a0.0,0.25)",
		"slow-link(e0.0-a0.0)": "slow-link(e0.0-a0.0,0.25)", "slow-link(h0.0.2-e0.0,0.5)": "slow-link(h0.0.2-e0.0,0.5)"} {
		if f, err := parseFailure(s, top); err != nil || f.name != want {
			t.Errorf("%q: %q, %v", s, f.name, err)
		}
	}
	for s, says := range map[string]string{"broken": "slow-link(LINK,PART)", "link-down(": "unknown", "link-down(e9.9-a0.0)": "e9.9", "link-down(e0.0-a0.0,0.5)": "no part", "slow-link(e0.0-a0.0,1)": "below 1",
		"slow-link(e0.0-a0.0,NaN)": "below 1", "slow-link(e0.0-a0.0,0)": "above 0", "link-down(h0.0.2-e0.0)": "no link", "symmetric(x)": "unknown"} {
		if _, err := parseFailure(s, top); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: error %v, want one that says %q", s, err, says)
		}
	}
}
