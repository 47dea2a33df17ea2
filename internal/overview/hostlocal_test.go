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
		h.Failures.Probes = &Probes{Unsent: unsent, Denied: &unsent}
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
	for name, change := range map[string]func(h *Host){
		"an uplink is down": func(h *Host) { h.Uplinks = []Uplink{{Device: "p0", Switch: "e0.0"}, {Device: "p1", Up: true}} },
		"trouble":           func(h *Host) { h.Trouble = "uplink p0 is down" },
		"other errors":      func(h *Host) { h.Failures.Probes.Denied = new(uint64) },
		"an old daemon":     func(h *Host) { h.Failures.Probes.Denied = nil },
		"more before":       func(h *Host) { *h.Failures.Probes.Denied = 3 },
	} {
		h := count(1100, 145, true)
		change(h)
		for _, p := range h.View(was, time.Second).Problems {
			if strings.Contains(p.What, "own kernel") {
				t.Errorf("%s: %s", name, p.What)
			}
		}
	}
	for _, test := range []struct{ encapsulation, address, want string }{
		{"ipip", "10.0.0.2", "(protocol 4)"}, {"ipip", "fd00::2", "(protocol 41)"}, {"srv6", "fd00::2", "SRv6"}, {"plain", "10.0.0.2", "probes (UDP 9339)"},
	} {
		h := count(1100, 145, true)
		h.Encapsulation, h.Address = test.encapsulation, test.address
		if got := firstOf(h, was); !strings.Contains(got, test.want) || test.want != "(protocol 4)" && strings.Contains(got, "(protocol 4)") {
			t.Errorf("%s, %s: %s", test.encapsulation, test.address, got)
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

// Of many late switches their number is told.
func TestHost_lateMany(t *testing.T) {
	h := leafSpine()
	h.Failures.Late = &Late{By: []string{"a", "b", "c", "d", "e"}, Unsaid: 7, Took: 2, Others: 1}
	if got := firstOf(&h, nil); !strings.Contains(got, "packets by a, b, c, d, ... (12 switches) take") {
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
		what, do := "", ""
		for _, p := range h.View(nil, 0).Problems {
			what, do = what+p.What+"\n", do+p.Do+"\n"
		}
		if !strings.Contains(what, "link e0.1-a0.1 ("+test.why) || strings.Contains(what, "hear each other") != test.want || strings.Contains(do, "outer headers taken off") != test.want {
			t.Errorf("%s: %s, do: %s", name, what, do)
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

// The ends of a link are told apart by what the daemon says, not by what its name looks like.
func TestHost_endsOfLinks(t *testing.T) {
	of := func(down string, ends [2]string, blamed string) *Host {
		h := leafSpine()
		h.Failures.Down, h.Failures.DownEnds = []string{down}, [][2]string{ends}
		h.Failures.Blamed = []Blame{{Places: []string{blamed}, Kinds: []string{"switch"}, Why: "none of its 2 links to other switches works"}}
		h.Failures.Paths = []Path{{Via: addr("10.0.0.9"), Bounce: "spine1", State: "down"}}
		return &h
	}
	for _, test := range []struct {
		name          string
		h             *Host
		named, cutOff bool
	}{
		{"an upper end", of("leaf1-b-spine1", [2]string{"leaf1-b", "spine1"}, "spine1"), false, false},
		{"a lower end", of("leaf1-b-spine2", [2]string{"leaf1-b", "spine2"}, "leaf1-b"), false, false},
		{"a name's end", of("leaf1-b-spine1", [2]string{"leaf1", "b-spine1"}, "spine1"), true, false},
		{"a name's begin", of("leaf1-b-spine2", [2]string{"leaf1-b", "spine2"}, "leaf1"), true, false},
		{"another", of("leaf1-spine1", [2]string{"leaf1", "spine1"}, "spine7"), true, true},
	} {
		var down string
		for _, p := range test.h.View(nil, 0).Problems {
			if strings.Contains(p.What, "out of use") && strings.HasPrefix(p.What, "link ") {
				down = p.What
			}
		}
		if (down != "") != test.named || strings.Contains(down, "switch spine1 dead") != test.cutOff {
			t.Errorf("%s: %q", test.name, down)
		}
	}
	old := Failures{Down: []string{"leaf1-b-spine1"}, Blamed: []Blame{{Places: []string{"spine1"}, Kinds: []string{"switch"}, Why: "dead"}}}
	if old.blames("leaf1-b-spine1") {
		t.Error("the ends of a name with two hyphens are guessed")
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
