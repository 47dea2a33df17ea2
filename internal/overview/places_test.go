package overview

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// leafSpine is a host of leaf-spine:leaves=2,spines=2,hosts=2 that sends to the other rack.
func leafSpine() Host {
	h := healthy()
	h.Topology, h.Reach = "leaf-spine:leaves=2,spines=2,hosts=2", &Reach{Racks: 1}
	h.Failures, h.Offload = &Failures{}, &Offload{}
	for i := range 2 {
		h.Failures.Paths = append(h.Failures.Paths, Path{To: "h0.0.2", Via: addr("10.255.%d.1", i), Bounce: fmt.Sprint("a0.", i), State: "up", RTT50: 0.12, RTT99: 0.4})
		h.Offload.Bounces = append(h.Offload.Bounces, Sent{Address: addr("10.255.%d.1", i), Packets: 1000, Bytes: 1500_000})
	}
	h.Reach.InUse = []RackPaths{{Rack: "e0.1", Prefix: "10.0.1.0/24", Paths: 2, Up: 2, Hosts: 1, RTT: 0.3, Most: 0.3}}
	return h
}

// blaming are hosts whose daemon blames places of the fabric.
func blaming() map[string]Host {
	quarantined := Path{To: "h0.1.3", Via: addr("10.255.1.1"), State: "quarantined", Why: "probes not answered", Loss: 1, Blamed: "e0.1-a0.1"}
	link := Blame{Places: []string{"e0.1-a0.1"}, Kinds: []string{"link"}, Why: "probes not answered"}

	alone := leafSpine() // the only host of the other rack says so
	alone.Failures.Paths = append(alone.Failures.Paths, quarantined)
	alone.Failures.Avoided = []string{"h0.1.3 by a0.1"}
	says := link
	says.Says = []string{"h0.1.3"}
	alone.Failures.Blamed = []Blame{says}
	alone.Reach.InUse[0].Up = 1

	all := leafSpine() // two hosts say so
	other := quarantined
	other.To = "h0.1.2"
	all.Failures.Paths = append(all.Failures.Paths, quarantined, other)
	all.Failures.Down, all.Failures.Blamed = []string{"e0.1-a0.1"}, []Blame{link}

	own := leafSpine() // it is on the own side, seen from the other rack
	own.Failures.Down, own.Failures.Blamed = []string{"e0.1-a0.1"}, []Blame{link}
	own.Failures.Paths[1].State, own.Failures.Paths[1].Why, own.Failures.Paths[1].Loss, own.Failures.Paths[1].Blamed = "quarantined", "probes not answered", 1, "e0.1-a0.1"
	own.Racks = []Rack{{Rack: "e0.0", Prefix: "10.0.0.0/24", Why: "not by a0.1: no boomerang comes home from there"}}

	both := leafSpine() // nothing tells the link from the host
	both.Failures.Paths = append(both.Failures.Paths, quarantined)
	both.Failures.Avoided = alone.Failures.Avoided
	both.Failures.Blamed = []Blame{{Places: []string{"e0.1-a0.1", "h0.1.3"}, Kinds: []string{"link", "host"}, Why: "many packets sent again", Says: []string{"h0.1.3"}, Loss: 0.12, Lost: 340, Paths: 1}}

	several := leafSpine() // and what no place explains
	lossy := &several.Failures.Paths[0]
	lossy.Loss, lossy.Blamed = 0.05, "a0.0"
	unknown := quarantined
	unknown.Blamed = ""
	several.Failures.Paths = append(several.Failures.Paths, unknown)
	several.Failures.Down = []string{"e0.0-a0.1", "e0.1-a0.1", "e0.7-a0.1"}
	near, held := link, link
	near.Places, held.Places, held.Held = []string{"e0.0-a0.1"}, []string{"e0.5-a0.0"}, true
	several.Failures.Blamed = []Blame{{Places: []string{"a0.0"}, Kinds: []string{"switch"}, Loss: 0.021, Lost: 1, Paths: 3}, link, held, near}

	return map[string]Host{"host_blames_alone": alone, "host_blames_link": all, "host_blames_own": own, "host_blames_both": both, "host_blames_several": several}
}

// What is blamed is told once, first, and not again as paths, links or racks.
func TestHost_oneFaultOneLine(t *testing.T) {
	for name, want := range map[string][]string{
		"host_blames_alone": {"link e0.1-a0.1, as h0.1.3 alone says (probes not answered)"},
		"host_blames_link":  {"link e0.1-a0.1 (probes not answered)"},
		"host_blames_own":   {"link e0.1-a0.1 (probes not answered)"},
		"host_blames_both":  {"link e0.1-a0.1 or host h0.1.3, as h0.1.3 alone says (many packets sent again; loses 12 %: 340 packets by 1 path)"},
		"host_blames_several": {"links e0.1-a0.1, e0.0-a0.1 (probes not answered)", "link e0.5-a0.0, in use as too few others are left (probes not answered)",
			"link e0.7-a0.1 out of use", "switch a0.0 (loses 2.1 %: 1 packet by 3 paths)", "path h0.1.3 by a0.1 out of use (quarantined: probes not answered)"},
	} {
		h := blaming()[name]
		v := h.View(nil, 0)
		var got []string
		for _, p := range v.Problems {
			got = append(got, p.What)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got  %q\nwant %q", name, got, want)
		}
		if !strings.HasSuffix(v.Why, want[0]) {
			t.Errorf("%s: the verdict is %q", name, v.Why)
		}
	}
}

// Of names with hyphens in them the ends are not guessed, and of many only some are named.
func TestHost_doPlaces(t *testing.T) {
	b := func(places ...string) Blame {
		return Blame{Places: places, Kinds: slices.Repeat([]string{"link"}, len(places))}
	}
	for want, g := range map[string][]Blame{
		"on leaf-1-spine-2: ip -s link, ethtool -S; weft blame":         {b("leaf-1-spine-2")},
		"on leaf1 and spine2: ip -s link, ethtool -S; weft blame":       {b("leaf1-spine2")},
		"on a, b, c, d, ...: ip -s link, ethtool -S; weft blame":        {b("a-b"), b("c-b"), b("d-e")},
		"on a, b and c: ip -s link, ethtool -S; weft blame":             {b("a-b"), b("c-b")},
		"on h-1 and s-2: ip -s link, ethtool -S; weft blame":            {{Places: []string{"h-1", "s-2"}, Kinds: []string{"host", "switch"}}},
		"on x-y: ip -s link, ethtool -S; on h: weft status; weft blame": {{Places: []string{"x-y"}, Says: []string{"h"}}},
	} {
		if got := doPlaces(g); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
