package overview

import (
	"strings"
	"testing"
	"time"
)

// firstOf is the first problem of a host's View, with a verdict before.
func firstOf(h, before *Host) string {
	v := h.View(before, time.Second)
	if len(v.Problems) == 0 {
		return v.Verdict
	}
	return v.Verdict + ": " + v.Problems[0].What + " do: " + v.Problems[0].Do
}

// What the host's own kernel drops is told before what follows from that.
func TestHost_ownKernelDrops(t *testing.T) {
	count := func(sent, unsent uint64, plain bool) *Host {
		h := leafSpine()
		h.Uplink = "p0"
		h.Failures.Probes = &Probes{Unsent: unsent}
		h.Failures.Probes.Watcher.Sent = sent
		h.Others = []Foreign{{Hook: "egress", Kind: "eBPF", Name: "policer", ID: 7}, {Hook: "ingress", Name: "stranger", ID: 8}}
		if plain {
			h.Reach.Plain = 1
			h.Racks = []Rack{{Rack: "e0.1", Plain: true, Why: "no boomerang came home"}}
		}
		return &h
	}
	was := count(1000, 50, false)
	if got := firstOf(count(1100, 145, true), was); !strings.HasPrefix(got, VerdictPlain+": this host's own kernel drops") ||
		!strings.Contains(got, "at p0: 95 of 100 probes") || !strings.Contains(got, "policer (program 7)") || strings.Contains(got, "stranger") {
		t.Error(got)
	}
	if v := count(1100, 145, true).View(was, time.Second); !strings.Contains(v.Why, "own kernel") {
		t.Errorf("the verdict does not say why: %s", v.Why)
	}
	for name, h := range map[string]*Host{"a full queue": count(1100, 70, false), "few": count(1005, 55, false), "another daemon": count(10, 5, false)} {
		if got := firstOf(h, was); got != VerdictSprayed {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Hosts that have answered before are named once; plain hosts, which never did, are not.
func TestHost_muteHosts(t *testing.T) {
	h := leafSpine()
	for i := range 2 {
		h.Failures.Paths = append(h.Failures.Paths, Path{To: "h0.1.3", Via: addr("10.255.%d.1", i), State: "mute", Why: "answers no probes any more, for 2.0 s"},
			Path{To: "h0.1.2", Via: addr("10.255.%d.1", i), State: "mute"})
	}
	if got := firstOf(&h, nil); !strings.HasPrefix(got, VerdictDegraded+": host h0.1.3: answers no probes any more") || strings.Contains(got, "h0.1.2") {
		t.Error(got)
	}
}

// A place that is late is a note: the fabric may be built so.
func TestHost_late(t *testing.T) {
	h := leafSpine()
	h.Failures.Late = &Late{Places: []string{"e0.0-a0.1", "a0.1"}, Kinds: []string{"link", "switch"}, By: []string{"a0.1"}, Took: 2.2, Others: 0.2}
	if got := firstOf(&h, nil); !strings.HasPrefix(got, VerdictSprayed+": link e0.0-a0.1 or switch a0.1 is late: packets by a0.1 take at least 2.20 ms there and back, by others 0.20 ms") {
		t.Error(got)
	}
}

// Silence of the switches is told.
func TestHost_updatesSilent(t *testing.T) {
	h := leafSpine()
	h.Failures.Updates = &Updates{Heard: 9, Silent: "no update of the switches (UDP port 9338) has come for 9 s"}
	if got := firstOf(&h, nil); !strings.HasPrefix(got, VerdictDegraded+": no update of the switches (UDP port 9338)") {
		t.Error(got)
	}
}

// Where the switches of a link hear each other, a cable is not all that it may be.
func TestHost_notTheCable(t *testing.T) {
	for name, test := range map[string]struct {
		updates *Updates
		why     string
		want    bool
	}{
		"they hear each other":  {&Updates{Heard: 1, Switches: 4}, whyDead, true},
		"they say it is down":   {&Updates{Heard: 1, Switches: 4, Down: []string{"e0.1-a0.1"}}, whyDead, false},
		"nobody is heard":       {&Updates{Heard: -1}, whyDead, false},
		"nobody is heard more":  {&Updates{Heard: 10, Switches: 4, Silent: "no update"}, whyDead, false},
		"they are not asked":    {nil, whyDead, false},
		"it loses some packets": {&Updates{Heard: 1, Switches: 4}, "many probes not answered", false},
	} {
		h := leafSpine()
		h.Failures.Updates = test.updates
		h.Failures.Blamed = []Blame{{Places: []string{"e0.1-a0.1"}, Kinds: []string{"link"}, Why: test.why}}
		text := ""
		for _, p := range h.View(nil, 0).Problems {
			text += p.What + "\n"
		}
		if !strings.Contains(text, "link e0.1-a0.1 ("+test.why) || strings.Contains(text, "does not take outer headers off") != test.want {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// A dead switch is told once, with none of its links.
func TestHost_deadSwitch(t *testing.T) {
	h := leafSpine()
	h.Failures.Down = []string{"e0.0-a0.1", "e0.1-a0.1", "e0.1-a0.0"}
	h.Failures.Blamed = []Blame{{Places: []string{"a0.1"}, Kinds: []string{"switch"}, Why: "none of its 2 links to other switches works"}}
	v := h.View(nil, 0)
	if len(v.Problems) != 2 || !strings.HasPrefix(v.Problems[0].What, "switch a0.1 (none of its 2 links") || !strings.HasPrefix(v.Problems[1].What, "link e0.1-a0.0 out of use") {
		t.Errorf("%+v", v.Problems)
	}
}

// Another switch in a neighbour's place is told, whether the port is up or down.
func TestSwitch_stranger(t *testing.T) {
	for _, state := range []string{"up", "down"} {
		s := Switch{Switch: "e0.0", Signed: true, Neighbours: []Neighbour{{Port: "p3", Name: "a0.3", State: state, Why: "a1.3 speaks there, not a0.3: cables are swapped, or node: is wrong at one of the ends"}}}
		v := s.View(nil, 0)
		if v.Verdict != VerdictDegraded || !strings.Contains(v.Problems[0].What, "port p3") || !strings.Contains(v.Problems[0].What, "a1.3 speaks there") || !strings.Contains(v.Problems[0].Do, "node:") {
			t.Errorf("%s: %+v", state, v.Problems)
		}
	}
}

// A burst of losses on a path is no bad cable; as many one by one are.
func TestHost_burstsOfLosses(t *testing.T) {
	for times, want := range map[uint64]string{2: VerdictSprayed, 20: VerdictDegraded + ": probes get lost by a0.1"} {
		h := leafSpine()
		h.Failures.Paths[1].Lately = &Lately{Sent: 800, Lost: 20, Times: &times}
		if got := firstOf(&h, nil); !strings.HasPrefix(got, want) {
			t.Errorf("%d times: %s", times, got)
		}
	}
}
