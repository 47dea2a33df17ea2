package overview

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// The screen of the golden files.
const (
	screenRows    = 24
	screenColumns = 80
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares a screen with its file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s\n(go test -update writes it anew)", name, got, want)
	}
}

// fits fails unless a screen has room for a text.
func fits(t *testing.T, name, text string, rows, columns int) {
	t.Helper()
	if n := strings.Count(text, "\n"); n >= rows {
		t.Errorf("%s: %d lines on a screen of %d:\n%s", name, n, rows, text)
	}
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > columns {
			t.Errorf("%s: a line of %d characters, where %d fit: %s", name, n, columns, line)
		}
	}
}

// anySize fails unless a View fits screens of all sizes.
func anySize(t *testing.T, name string, v View) {
	t.Helper()
	for rows := MinRows; rows <= 50; rows += 3 {
		for columns := MinColumns; columns <= 150; columns += 11 {
			fits(t, name, v.Text(rows, columns), rows, columns)
		}
	}
}

func addr(format string, args ...any) netip.Addr {
	return netip.MustParseAddr(fmt.Sprintf(format, args...))
}

// healthy is a host of fat-tree:k=4 that sends to two racks.
func healthy() Host {
	h := Host{Mode: "offload", ModeWhy: "the policy allows it", Encapsulation: "ipip", Topology: "fat-tree:k=4", Policy: "auto", Unit: "flowcell",
		Address: "10.0.0.2", Uplink: "p0", Process: 412, Uptime: 8000, State: "working", Reach: &Reach{Racks: 7},
		Failures: &Failures{}, Offload: &Offload{}}
	for i := range 4 {
		h.Failures.Paths = append(h.Failures.Paths, Path{To: "h0.0.2", Via: addr("10.4.%d.%d", 1+i/2, 1+i%2), Bounce: fmt.Sprintf("c%d.%d", 1+i/2, 1+i%2), State: "up",
			RTT: 0.112, RTT50: 0.11, RTT99: 0.31 + float64(i)/100})
		h.Offload.Bounces = append(h.Offload.Bounces, Sent{Address: addr("10.4.%d.%d", 1+i/2, 1+i%2), Packets: 1000_000, Bytes: 1500_000_000})
	}
	for _, name := range []string{"1.0", "3.1"} {
		h.Reach.InUse = append(h.Reach.InUse, RackPaths{Rack: "e" + name, Prefix: "10." + name + ".0/24", Paths: 4, Up: 4, Hosts: 2, RTT: 0.2, Most: 0.25})
	}
	return h
}

// later is a host's status after traffic.
func later(h Host, packets ...uint64) Host {
	o := *h.Offload
	o.Bounces = append([]Sent{}, o.Bounces...)
	for i, n := range packets {
		o.Bounces[i].Packets += n
		o.Bounces[i].Bytes += n * 1500
	}
	h.Offload = &o
	return h
}

// big is a host of a large fabric of which every rack is ill.
func big() Host {
	h := healthy()
	h.Reach = &Reach{Racks: 1000, Plain: 300, Limited: 700}
	h.Failures.Paths, h.Offload.Bounces = nil, nil
	for i := range 1000 {
		name, prefix := fmt.Sprintf("e%d.%d", i/32, i%32), fmt.Sprintf("10.%d.%d.0/24", i/32, i%32)
		h.Racks = append(h.Racks, Rack{Rack: name, Prefix: prefix, Plain: i < 300,
			Why: fmt.Sprintf("no boomerang came home from c%d.1 for %d.0 s: the switches do not decapsulate IP-in-IP", i%40, i)})
		h.Reach.InUse = append(h.Reach.InUse, RackPaths{Rack: name, Prefix: prefix, Plain: i < 300, Paths: 256, Up: i % 256, Hosts: 1, Loss: 0.2, Worst: "quarantined", Why: "probes not answered"})
	}
	for i := range 256 {
		h.Failures.Paths = append(h.Failures.Paths, Path{To: "h0.0.2", Via: addr("10.32.%d.%d", i/16, i%16), Bounce: fmt.Sprintf("c%d.%d", i/16, i%16), State: "quarantined", Why: "probes not answered", Loss: 1})
	}
	for i := range 300 {
		h.Failures.Down = append(h.Failures.Down, fmt.Sprintf("a%d.1-c1.%d", i%40, i))
		h.Failures.Avoided = append(h.Failures.Avoided, fmt.Sprintf("h%d.1.2 by c1.%d", i%40, i))
	}
	return h
}

// containers is a host with containers, in a fabric with others.
func containers() Host {
	h := healthy()
	h.Behind = []Behind{{Prefix: "10.244.0.0/24", Host: "10.0.0.2", Rack: "e0.0", Own: true},
		{Prefix: "10.244.1.0/24", Host: "10.0.1.2", Rack: "e0.1"}, {Prefix: "10.244.2.0/24", Host: "10.0.1.2", Rack: "e0.1"},
		{Prefix: "10.244.3.0/24", Host: "10.9.9.9"}}
	h.Offload.Forwarded, h.Offload.ForwardedLong = 16, 1
	return h
}

func hosts() map[string]Host {
	starting := healthy()
	starting.Uptime = 1
	starting.Reach.Plain, starting.Reach.InUse, starting.Offload.Bounces = 7, nil, nil
	for i := range 7 {
		starting.Racks = append(starting.Racks, Rack{Rack: fmt.Sprintf("e%d", i), Plain: true, Why: "not proved yet: boomerangs, some of full size, have to come home from c1.1"})
	}

	plain := healthy()
	plain.Reach.Plain, plain.Reach.InUse[0].Plain, plain.Reach.InUse[1].Plain = 7, true, true
	for i := range 7 {
		plain.Racks = append(plain.Racks, Rack{Rack: fmt.Sprintf("e%d", i), Plain: true,
			Why: "no boomerang came home from c1.1, c1.2, c2.1, c2.2 for 4.2 s: the switches do not decapsulate IP-in-IP, something filters protocol 4, or rp_filter is strict at a switch"})
	}

	slow := healthy()
	p := &slow.Failures.Paths[2]
	p.State, p.Why, p.RTT50, p.RTT99 = "slow", "its round trips take 9.1 ms, those of others 0.1 ms", 9.1, 12.7
	slow.Failures.Paths[3].Loss, slow.Failures.Paths[3].Lately = 0.05, &Lately{Sent: 100, Lost: 5}
	slow.Failures.Down = []string{"a0.2-c1.1"}
	slow.Reach.InUse[1].Up, slow.Reach.InUse[1].Worst, slow.Reach.InUse[1].Why = 3, "slow", "its round trips take 9.1 ms"
	slow.Racks = []Rack{{Rack: "e3.1", Prefix: "10.3.1.0/24", MTU: 1380, Why: "of packets up to 1500 bytes only those up to 1400 come home by c1.1: a link on the way has a smaller MTU, or loses longer packets"}}

	away := healthy()
	away.State, away.Trouble, away.Reach, away.Failures, away.Offload = stateAway, "the MTU of p0 is 1400 now, and was 1500", nil, nil, nil

	tunnel := Host{Mode: "gateway", Encapsulation: "udp", Policy: "presto", Unit: "flowcell", Process: 7, Uptime: 90, State: "working", Dataplane: &Dataplane{}}
	for i := range 4 {
		tunnel.Dataplane.Paths = append(tunnel.Dataplane.Paths, Sent{Path: i, Packets: uint64(100 + i), Bytes: 150_000})
	}

	troubled := healthy()
	troubled.Uplinks = []Uplink{{"p0", "e0.0", true}, {"p1", "e0.1", false}}
	troubled.Others = []Foreign{{Hook: "egress", Name: "cil_to_netdev", ID: 31, Front: true}}
	troubled.Repairs, troubled.Latest = 2, []string{"rule 5741", "route in table 5741"}
	troubled.Failures.Paths[0].State, troubled.Failures.Paths[0].Why, troubled.Failures.Paths[0].Loss = "quarantined", "probes not answered", 0.5

	all := map[string]Host{"host_healthy": healthy(), "host_starting": starting, "host_plain": plain, "host_slow": slow, "host_away": away,
		"host_tunnel": tunnel, "host_containers": containers(), "host_troubled": troubled, "host_big": big()}
	maps.Copy(all, blaming())
	return all
}

func TestHost_screens(t *testing.T) {
	for name, h := range hosts() {
		text := h.View(nil, 0).Text(screenRows, screenColumns)
		golden(t, name, text)
		fits(t, name, text, screenRows, screenColumns)
		anySize(t, name, h.View(nil, 0))
		text = h.View(nil, 0).Text(MinRows, MinColumns)
		if problems := h.View(nil, 0).Problems; len(problems) > 0 && !strings.Contains(text, problems[0].What[:20]) {
			t.Errorf("%s: a small screen does not say what is wrong:\n%s", name, text)
		}
	}
}

// The verdict says "by all paths" only of hosts of which that is so to each rack.
func TestHost_verdictCountsRacks(t *testing.T) {
	unproved := Rack{Rack: "e1.0", Plain: true, Why: "not proved yet: boomerangs have to come home"}
	for _, c := range []struct {
		reach Reach
		racks []Rack
		want  string
	}{
		{Reach{Racks: 8}, nil, "to 8 racks by all paths"},
		{Reach{Racks: 8, Plain: 3}, []Rack{unproved, unproved, unproved}, "to 5 of 8 racks, 3 not proved yet"},
		{Reach{Racks: 8, Plain: 3}, nil, "to 5 of 8 racks, 3 plain"},
		{Reach{Racks: 8, Limited: 2}, nil, "to 8 racks, 2 not by all paths or in full size"},
		{Reach{Racks: 8, Plain: 1, Limited: 2}, []Rack{unproved}, "to 7 of 8 racks, 1 not proved yet, 2 not by all paths or in full size"},
	} {
		h := healthy()
		h.Reach, h.Racks = &c.reach, c.racks
		if v := h.View(nil, 0); v.Verdict != VerdictSprayed || v.Why != c.want {
			t.Errorf("%+v: %s, %s; want %s, %s", c.reach, v.Verdict, v.Why, VerdictSprayed, c.want)
		}
	}
}

// A host is degraded by a path that lost at least 5 packets lately and 2 % of them, and not by
// fewer.
func TestHost_lossyPaths(t *testing.T) {
	for _, c := range []struct {
		loss   float64
		lately *Lately
		want   string
	}{
		{2.0 / 64, &Lately{Sent: 100, Lost: 2}, VerdictSprayed},
		{4.0 / 64, &Lately{Sent: 100, Lost: 4}, VerdictSprayed},
		{0, &Lately{Sent: 100, Lost: 5}, VerdictDegraded},
		{0, &Lately{Sent: 1000, Lost: 19}, VerdictSprayed},
		{0, &Lately{Sent: 1000, Lost: 20}, VerdictDegraded},
		{0, &Lately{Sent: 0, Lost: 7}, VerdictSprayed},
		{4.0 / 64, nil, VerdictSprayed}, // an older daemon's
		{5.0 / 64, nil, VerdictDegraded},
	} {
		h := healthy()
		h.Failures.Paths[1].Loss, h.Failures.Paths[1].Lately = c.loss, c.lately
		if v := h.View(nil, 0); v.Verdict != c.want {
			t.Errorf("%.3f, %+v: %s, want %s", c.loss, c.lately, v.Verdict, c.want)
		}
	}
}

// Two statuses say what happens in between: the share and rate of each path, and drops.
func TestHost_betweenTwoStatuses(t *testing.T) {
	h := healthy()
	now := later(h, 100, 100, 100, 700)
	now.Offload.NoPath, now.Offload.Unattended = 3, 0
	text := now.View(&h, 250*time.Millisecond).Text(screenRows, 120)
	golden(t, "host_between", text)
	now.Offload.NoPath = leastPackets
	if v := now.View(&h, time.Second); v.Verdict != VerdictDegraded {
		t.Errorf("%d packets without a path are no fault: %s", leastPackets, v.Verdict)
	}

	restarted := h
	restarted.Process++
	if v := now.View(&restarted, time.Second); v.Verdict != VerdictSprayed {
		t.Errorf("counters of another process count: %+v", v.Problems)
	}
	few := later(h, 3, 0, 0, 0)
	if text := few.View(&h, time.Second).Text(screenRows, 120); !strings.Contains(text, "25 %  ") {
		t.Errorf("the share of three packets says nothing:\n%s", text)
	}
}

// switchWell is an edge switch of fat-tree:k=4.
func switchWell() Switch {
	s := Switch{Switch: "e0.0", Topology: "fat-tree:k=4", Process: 9, Uptime: 7000, Signed: true, Database: make([]Told, 20), Decap: &Outer{Decapsulated: 812}}
	for i, name := range []string{"h0.0.2", "h0.0.3", "a0.1", "a0.2"} {
		why := "hears us, and we it"
		if i < 2 {
			why = "carrier"
		}
		s.Neighbours = append(s.Neighbours, Neighbour{Port: fmt.Sprintf("p%d", i), Name: name, State: "up", Why: why, Since: 6900, Hears: i > 1})
		s.Meters = append(s.Meters, Meter{Port: fmt.Sprintf("p%d", i), Rate: 1e9, Length: uint64(i) * 9000, Load: float64(i) / 10, Bytes: 1000})
	}
	return s
}

func switches() map[string]Switch {
	broken := switchWell()
	broken.Signed = false
	broken.Neighbours[2].State, broken.Neighbours[2].Why, broken.Neighbours[2].Since = "down", "no carrier", 42
	broken.Neighbours[3].State, broken.Neighbours[3].Held = "held", 3
	broken.Down = []string{"e0.0-a0.1", "e0.0-a0.2", "a3.1-c1.1"}
	broken.BalanceError = "balance conga: the kernel refuses the program: no such file or directory"
	broken.Repairs = &SwitchRepairs{Count: 1, Last: []string{"route 10.1.0.0/16"}, Trouble: "the route 10.2.0.0/16 cannot be changed: no buffer space available"}

	named := switchWell()
	named.Neighbours[3].Why, named.Neighbours[3].Hears = whySilent+": judged by its carrier", false
	named.Rejected = map[string]uint64{"sender": 88}

	ended := switchWell()
	ended.Error = "poll: bad file descriptor"

	big := switchWell()
	big.Neighbours, big.Meters = nil, nil
	for i := range 256 {
		big.Neighbours = append(big.Neighbours, Neighbour{Port: fmt.Sprintf("p%d", i), Name: fmt.Sprintf("e%d.0", i), State: []string{"up", "down"}[i%2], Why: "no hello for 150 ms", Since: float64(i)})
	}
	return map[string]Switch{"switch_well": switchWell(), "switch_broken": broken, "switch_named": named, "switch_ended": ended, "switch_big": big}
}

func TestSwitch_screens(t *testing.T) {
	for name, s := range switches() {
		text := s.View(nil, 0).Text(screenRows, 100)
		golden(t, name, text)
		fits(t, name, text, screenRows, 100)
		anySize(t, name, s.View(nil, 0))
	}
}

func TestSwitch_betweenTwoStatuses(t *testing.T) {
	s := switchWell()
	now := switchWell()
	now.Decap = &Outer{Decapsulated: 900, Spoofed: 5}
	now.Rejected = map[string]uint64{"mac": 2}
	now.Meters[3].Bytes += 125_000_000
	golden(t, "switch_between", now.View(&s, time.Second).Text(screenRows, 100))
}

// Any status makes a screen, and no part of it a panic.
func FuzzView(f *testing.F) {
	for _, h := range hosts() {
		b, err := json.Marshal(h)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, 24, 80)
	}
	for _, s := range switches() {
		b, err := json.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, 40, 100)
	}
	f.Add([]byte(`{"reach":{"in_use":[{}],"unnamed":-1},"failures":{"paths":[{"bounce":"x"},{}]},"offload":{"bounces":[{"packets":1}]}}`), 0, 0)
	f.Fuzz(func(t *testing.T, text []byte, rows, columns int) {
		rows, columns = min(max(rows, MinRows), 500), min(max(columns, MinColumns), 500)
		if h, err := ParseHost(text); err == nil {
			fits(t, "host", h.View(nil, 0).Text(rows, columns), rows, columns)
			h.View(&Host{}, time.Second).Text(rows, columns)
		}
		if s, err := ParseSwitch(text); err == nil {
			fits(t, "switch", s.View(nil, 0).Text(rows, columns), rows, columns)
			s.View(&Switch{}, time.Second).Text(rows, columns)
		}
	})
}
