package main

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weft/internal/daemon"
	"weft/internal/dataplane"
	"weft/stack"
)

// congested is a host that samples, and has conga's view of another rack.
var congested = daemon.Status{
	Mode: daemon.ModeGateway, Encapsulation: daemon.EncapSRv6, Policy: "luopan", MTU: 1500,
	Congestion: []stack.Congestion{
		{
			Rack: "e1.0", Prefix: netip.MustParsePrefix("10.1.0.0/24"), Metric: "queue", RTT: 123456, Expiry: 2 * time.Millisecond, Unsampled: 7,
			Paths: []stack.PathCongestion{
				{Path: 0, Bounce: netip.MustParseAddr("10.4.1.1"), Live: true, Choices: 41, Known: true, Best: true, Age: 900 * time.Microsecond, Queue: 3, Meters: 4, RTT: 130 * time.Microsecond, Sent: 65536},
				{Path: 1, Bounce: netip.MustParseAddr("10.4.1.2"), Live: true, Choices: 2, Known: true, Queue: 99, Meters: 4, Marked: true},
				{Path: 3, Bounce: netip.MustParseAddr("10.4.2.2"), Choices: 5},
			},
		},
		{
			Rack: "e2.1", Prefix: netip.MustParsePrefix("10.2.1.0/24"),
			Tags: []stack.TagCongestion{{Tag: 2, Paths: []int{2, 18}, Local: 5, Remote: 6, Known: true, Age: 10 * time.Millisecond, Choices: 11}},
		},
	},
	Offload: map[string]any{"bounces": []map[string]any{
		{"address": "10.4.1.1", "packets": 9, "bytes": 900, "flowcells": 2},
		{"address": "10.4.1.2", "packets": 0, "bytes": 0},
	}},
	Dataplane: dataplane.GatewayStats{Paths: []stack.PathStats{{Bounce: netip.MustParseAddr("10.4.2.1"), Packets: 8, Bytes: 800}}},
}

// lineWith is the line of a table that begins with a word, with single spaces.
func lineWith(t *testing.T, out, first string) string {
	t.Helper()
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) > 0 && f[0] == first {
			return strings.Join(f, " ")
		}
	}
	t.Errorf("no line %q in\n%s", first, out)
	return ""
}

func TestPaths_live(t *testing.T) {
	socket := answering(t, congested)
	out := mustWeft(t, "paths", "--live", "--socket", socket)
	for first, want := range map[string]string{
		"0":        "0 10.4.1.1 best 41 queue 3 by 4 switches 130µs 900µs 65536",
		"1":        "1 10.4.1.2 sampled 2 queue 99 by 4 switches, marked 0s 0s 0",
		"3":        "3 10.4.2.2 down 5 - - - -",
		"2":        "2 2 18 11 5 6 10ms",
		"policy":   "policy luopan, encapsulation srv6",
		"10.4.1.1": "10.4.1.1 9 900 2",
		"10.4.2.1": "10.4.2.1 8 800 0",
	} {
		if got := lineWith(t, out, first); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if want := "to e1.0 (10.1.0.0/24): by queue, round trip 123µs, good for 2ms, 7 without a sample\n"; !strings.Contains(out, want) {
		t.Errorf("no %q in\n%s", want, out)
	}
	if strings.Contains(out, "\n10.4.1.2") {
		t.Errorf("a switch by which nothing was sent is listed:\n%s", out)
	}
}

func TestPaths_liveOfOnePair(t *testing.T) {
	socket := answering(t, congested)
	for to, want := range map[string]string{"10.1.0.3": "e1.0", "e2.1": "e2.1"} {
		var got liveJSON
		if err := json.Unmarshal([]byte(mustWeft(t, "paths", "--live", "--json", "--socket", socket, "--to", to)), &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Racks) != 1 || got.Racks[0].Rack != want || got.Policy != "luopan" || got.Encapsulation != "srv6" {
			t.Errorf("to %s: %+v", to, got)
		}
		if len(got.Bounces) != 2 || got.Bounces[0].Address != netip.MustParseAddr("10.4.2.1") || got.Bounces[1].Flowcells != 2 {
			t.Errorf("sent: %+v", got.Bounces)
		}
	}
	wantError(t, "paths --live --socket "+socket+" --to 10.3.0.2", "name an address in one of e1.0 (10.1.0.0/24), e2.1")
	wantError(t, "paths --live --socket "+socket+" --interval 1ms", "--interval 1ms: must be 50ms or more")
	wantError(t, "paths --live --policy drb", "exclude each other")

	none := congested
	none.Policy, none.Congestion = "presto", nil
	socket = answering(t, none)
	if out := mustWeft(t, "paths", "--live", "--socket", socket); !strings.Contains(out, "nothing is known") {
		t.Errorf("presto: %s", out)
	}
	wantError(t, "paths --live --socket "+socket+" --to 10.1.0.3", "the policy does not look (presto)")
}

// The status has the same tables, in place of fields without end.
func TestStatus_congestionAsTables(t *testing.T) {
	socket := answering(t, congested)
	out := mustWeft(t, "status", "--all", "--socket", socket)
	if strings.Contains(out, "congestion.") || !strings.Contains(out, "to e1.0 (10.1.0.0/24): by queue") || lineWith(t, out, "mtu") != "mtu 1500" {
		t.Errorf("status:\n%s", out)
	}
	var s daemon.Status
	if err := json.Unmarshal([]byte(mustWeft(t, "status", "--json", "--socket", socket)), &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Congestion) != 2 || s.Congestion[0].Paths[1].Queue != 99 {
		t.Errorf("JSON: %+v", s.Congestion)
	}
}

func TestShorter(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", 900: "1µs", 123456: "123µs", 1234567: "1.23ms", 12345678: "12.3ms", 1500 * time.Millisecond: "1.5s", 90 * time.Second: "1m30s"} {
		if got := shorter(d); got != want {
			t.Errorf("%d ns: %s, want %s", d, got, want)
		}
	}
}
