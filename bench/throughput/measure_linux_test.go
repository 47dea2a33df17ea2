package throughput

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/topology"
)

func TestCountsSince_rates(t *testing.T) {
	start := time.Now()
	before := counts{
		at: start, cpu: cpuTimes{busy: 10, idle: 100, steal: 1}, others: 7, spines: []spineCount{{100, start}, {0, start.Add(time.Second)}},
		receiver: report{Bytes: 1e9, Nanos: 5e9}, sender: report{Retransmits: 3},
		processes: report{Mallocs: 1000, CPUNanos: 4e9},
	}
	after := counts{
		at: start.Add(2 * time.Second), cpu: cpuTimes{busy: 13, idle: 100.9, steal: 1.1}, others: 7.5, // the second spine is read late, after twice the time
		spines:   []spineCount{{200, start.Add(2 * time.Second)}, {600, start.Add(5 * time.Second)}},
		receiver: report{Bytes: 3e9, Nanos: 7e9}, sender: report{Retransmits: 13},
		processes: report{Mallocs: 5000, CPUNanos: 6e9},
	}
	s := after.since(before)
	for _, v := range []struct {
		what      string
		got, want float64
	}{
		{"Gbit/s", s.gbps, 8}, {"cores", s.cores, 1.25}, {"other cores", s.otherCores, 0.25},
		{"cores of processes", s.processCores, 1}, {"idle", s.idle, 22.5}, {"steal", s.steal, 2.5},
		{"mallocs", s.mallocs, 2}, {"retransmits", s.retransmits, 5},
		{"share 0", s.shares[0], 0.75}, {"share 1", s.shares[1], 0.25}, {"per GB", s.perGB(s.cores), 1.25},
	} {
		if !near(v.got, v.want) {
			t.Errorf("%s: %v, want %v", v.what, v.got, v.want)
		}
	}
	// Clocks of different kinds disagree: noise, not negative cost.
	after.others = 20
	if s := after.since(before); s.cores != 0 || s.perCore() != 0 {
		t.Errorf("%v cores", s.cores)
	}
}

func TestProcessTicks(t *testing.T) {
	const rest = "S 1 7 7 0 -1 %s 100 200 0 0 11 22 33 44 20 0 4 0 99 1 2"
	for stat, want := range map[string]float64{
		"7 (go) " + strings.Replace(rest, "%s", "4194560", 1):           110,
		"7 (a) b (c) R) " + strings.Replace(rest, "%s", "4194560", 1):   110,
		"7 (ksoftirqd/0) " + strings.Replace(rest, "%s", "69238848", 1): 0,
	} {
		if got, err := processTicks(stat); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", stat, got, err, want)
		}
	}
	for _, bad := range []string{"", "7 (go) S 1", "7 (go) " + strings.Replace(rest, "%s", "x", 1), strings.Replace(rest, "22", "y", 1)} {
		if got, err := processTicks(bad); err == nil {
			t.Errorf("%q: %v and no error", bad, got)
		}
	}
}

// What this test burns is somebody else's until it is named as ours.
func TestOtherSeconds_leavesOutOurs(t *testing.T) {
	read := func(ours ...int) float64 {
		s, err := otherSeconds(ours)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	me := os.Getpid()
	// What others burn between the two readings counts against what this process has burnt.
	for end := time.Now().Add(time.Minute); ; {
		all := read()
		if all-read(me) >= 0.2 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("what this process burns is among what others burn")
		}
	}
}

func TestBetween_isALeafSpine(t *testing.T) {
	top, err := topology.Parse(Options{}.fabric())
	if err != nil {
		t.Fatal(err)
	}
	from, _ := top.Lookup(fromName)
	to, _ := top.Lookup(toName)
	nodes, spines, err := between(top, from.ID, to.ID)
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, id := range nodes {
		names[top.Node(id).Name] = true
	}
	if got := strings.Join(slices.Sorted(maps.Keys(names)), " "); got != "a0.4 a0.5 a0.6 a0.7 e0.0 e0.1 h0.0.2 h0.1.2" {
		t.Errorf("nodes %s", got)
	}
	if len(spines) != 4 {
		t.Errorf("spines %v", spines)
	}
	for _, s := range spines {
		for _, p := range top.Ports(s.node) {
			if peer := top.Node(p.Peer).Name; fmt.Sprintf("p%d", p.Index) == s.port && peer != "e0.1" {
				t.Errorf("%s: port %s leads to %s", top.Node(s.node).Name, s.port, peer)
			}
		}
	}
}

func TestSelect(t *testing.T) {
	if _, err := Select([]string{"kernel", "carrier-pigeon"}); err == nil || !strings.Contains(err.Error(), `"carrier-pigeon"`) || !strings.Contains(err.Error(), "known: kernel, kernel-big, kernel-packets") {
		t.Errorf("error %v", err)
	}
	all, err := Select(nil)
	if err != nil || len(all) != len(Cases()) {
		t.Errorf("%d cases, %v", len(all), err)
	}
	seen := make(map[string]bool)
	for _, c := range all {
		if seen[c.Name] || c.About == "" || c.TCP == "" || c.open == nil {
			t.Errorf("%+v", c)
		}
		seen[c.Name] = true
	}
	if two, _ := Select([]string{"wireguard-go", "kernel"}); len(two) != 2 || two[0].Name != reference {
		t.Errorf("%+v", two)
	}
}

func TestWorker_bad(t *testing.T) {
	for job, want := range map[string]string{
		"x":                 "weft bench throughput starts this",
		`{"case":"pigeon"}`: "pigeon",
		`{"case":"kernel"}`: "topology",
		`{"case":"kernel","topology":"fat-tree:k=2","target":"nowhere"}`: "nowhere",
	} {
		var out strings.Builder
		if err := Worker(job, strings.NewReader(""), &out); err != nil || !strings.Contains(out.String(), `"error":`) || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %v, answer %s", job, err, out.String())
		}
	}
}

func TestTail_keepsTheLast(t *testing.T) {
	var tl tail
	tl.Write([]byte(strings.Repeat("x", 2*maxTail)))
	tl.Write([]byte("the end\n"))
	if s := tl.String(); !strings.HasSuffix(s, "xthe end") || len(s) > maxTail {
		t.Errorf("%d bytes: %q", len(s), s)
	}
}
