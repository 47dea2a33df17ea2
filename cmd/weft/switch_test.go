package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/fabric"
	"weft/internal/switchd"
)

func TestSwitch_printedConfigIsTheExampleAndValid(t *testing.T) { printsTheExample(t, "switch") }

func TestSwitch_bad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "switch.yaml")
	if err := os.WriteFile(file, []byte("node: auto\nhelo: 5ms\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantError(t, "switch --config "+file, "switch.yaml:2", "helo: unknown key; did you mean hello?")
	wantError(t, "switch --check --config "+file, "switch.yaml:2")
	wantError(t, "switch --config /nonexistent/switch.yaml", "/nonexistent/switch.yaml", "--print-config")
	wantError(t, "switch --print-config --check", "choose one")
	wantError(t, "switch status --socket /nonexistent/s", "/nonexistent/s")
}

func TestSwitchStatus_printsWhatTheAgentSays(t *testing.T) {
	socket := answering(t, switchd.Status{Switch: "a0.2", Topology: "fat-tree:k=4", Down: []string{"a0.2-c1.1"},
		Neighbours: []switchd.Neighbour{{Port: "p2", Name: "c1.1", State: "held", Held: 1.5, Why: "hears us, and we it", Since: 3}},
		Database:   []switchd.Entry{{Switch: "a0.2", Sequence: 7, From: "itself", Down: []string{"a0.2-c1.1"}}},
		Meters: []fabric.PortMeter{{Port: "p2", RateBits: 20e6, Length: 4500, Max: 9000, DRE: 3, Load: 0.4, ECNBytes: 8125, Marks: 5, Samples: 6, Drops: 7,
			RED: fabric.PortRED{Average: 11, Min: 12, Max: 13, EarlyDrops: 14, ForcedDrops: 15}}},
		Feedback: &fabric.TellerStats{Told: 21, Bounded: 22, Malformed: 1, Ended: "broken"},
		Rejected: map[string]uint64{"replay": 2, "mac": 1}})
	out := strings.Join(strings.Fields(mustWeft(t, "switch", "status", "--all", "--socket", socket)), " ")
	for _, want := range []string{"a0.2 of fat-tree:k=4", "down: a0.2-c1.1", "rejected: mac 1, replay 2", "updates: UNSIGNED", "p2 c1.1 held for 1.5s 3s hears us, and we it", "a0.2 7 0s itself a0.2-c1.1", "p2 20 4500 9000 40 % 3 8125 5 6 7", "p2 11 12 13 5 14 15", "feedback: 21 messages sent, not sent: 23 (", "above the bounds 22", "feedback has ended: broken"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in: %s", want, out)
		}
	}
	var s switchd.Status
	if err := json.Unmarshal([]byte(mustWeft(t, "switch", "status", "--json", "--socket", socket)), &s); err != nil || s.Switch != "a0.2" {
		t.Errorf("JSON: %+v, %v", s, err)
	}
	for want, s := range map[string]switchd.Status{
		"balance: packets go by plain routes: why":      {BalanceError: "why"},
		"balance drb: the counters cannot be read: why": {Balance: &fabric.BalanceStats{Rule: "drb"}, BalanceError: "why"},
		"balance drb: 3 packets to 2 destinations":      {Balance: &fabric.BalanceStats{Rule: "drb", Chosen: 3, Destinations: 2}},
		"balance classifier: 2 flows known, 9 have got a port, 4 moved, 7 evicted; 1 had a dead port; 5 packets had no room for their flow; 6 packets went": {
			Classifier: &fabric.ClassifierStats{Rule: "classifier", Known: 2, Flows: 9, Moved: 4, Evicted: 7, Rescued: 1, Full: 5, Late: 6}},
		"balance classifier: the counters cannot be read: why": {Classifier: &fabric.ClassifierStats{Rule: "classifier"}, BalanceError: "why"},
	} {
		s.Switch = "a0.2"
		out := mustWeft(t, "switch", "status", "--all", "--socket", answering(t, s))
		if !strings.Contains(out, want) || strings.Count(out, "balance") != 1 {
			t.Errorf("%q is not all that stands of the balance in: %s", want, out)
		}
	}
	host := answering(t, map[string]string{"mode": "gateway"})
	wantError(t, "switch status --socket "+host, "answers no switch")
}
