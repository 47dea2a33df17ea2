package main

import (
	"strings"
	"testing"

	"weft/bench/failover"
)

func TestBenchFailover_bad(t *testing.T) {
	const bench = "bench failover "
	wantError(t, bench+"--repetitions 0", "--repetitions=0", "1 to 10000")
	wantError(t, bench+"--rate -1", "--rate=-1", "Mbit/s")
	wantError(t, bench+"--load 2", "--load=2", "0 for as much as TCP gets")
	wantError(t, bench+"--kinds loud", "--kinds", `"loud"`, "silent")
	wantError(t, bench+"--kinds=", "--kinds", "seen, silent")
	wantError(t, bench+"--agents maybe", "--agents=maybe", "both")
	wantError(t, bench+"--agents false --liveness=false", "--liveness=false", "nobody")
	wantError(t, bench+"--topology ring", "--topology")
	wantError(t, bench+"--outage 1ms", "--outage=1ms", "100ms")
	wantError(t, bench+"--hello 0s", "--hello=0s")
	wantError(t, bench+"--figure12 --chaos 1m", "exclude each other")
	wantError(t, bench+"now", "now")
	wantError(t, bench+"--topology fat-tree:k=4 --trace /nonexistent/t", "--trace=/nonexistent/t", "name another file")
}

func failoverResults() []failover.Result {
	return []failover.Result{
		{Kind: failover.KindSeen, Agents: true, Repetitions: 2, P50: 3.14, P99: 9.96, OthersKept: 15, OthersExpected: 16, GoodputBefore: 120,
			Samples: []failover.Repetition{{LeftMs: 9.96}, {LeftMs: 3.14}}},
		{Kind: failover.KindSilent, Repetitions: 1, P50: 60, Samples: []failover.Repetition{{LeftMs: 60}}},
	}
}

func TestFailoverRows_asManyCellsAsHeads(t *testing.T) {
	rows := failoverRows(failoverResults())
	for _, r := range rows {
		if len(r) != len(rows[0]) {
			t.Errorf("%d cells, %d heads: %v", len(r), len(rows[0]), r)
		}
	}
	if line := strings.Join(rows[1], ";"); !strings.Contains(line, "seen;true;2;3.1;10.0") || !strings.Contains(line, "15 of 16") {
		t.Error(line)
	}
}

func TestFailoverCharts_drawEveryKind(t *testing.T) {
	var b strings.Builder
	if err := failoverCharts(newRunInfo(1, 1), failoverResults()).Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"seen, with agents", "silent, without agents", "15 of 16"} {
		if !strings.Contains(b.String(), s) {
			t.Errorf("no %q on the page", s)
		}
	}
	l := distribution("x", failoverResults()[0].Samples)
	if n := len(l.Y); n != 5 || l.Y[n-1] != 100 || l.X[1] != 3.14 || l.Y[1] != 0 || l.Y[2] != 50 {
		t.Errorf("%+v", l)
	}
}

func TestDegradationCharts_markEventsAndLevels(t *testing.T) {
	d := failover.Degradation{Topology: "fat-tree:k=4", Points: []failover.PointJSON{{S: 0.1, Mbit: 60}, {S: 0.2, Mbit: 61}},
		Levels: []failover.Level{{Event: "all up", ToS: 4, IdealMbit: 64, Mbit: 61}, {Event: "3.0 removed", FromS: 4, ToS: 8, IdealMbit: 48}}}
	c := degradationCharts(newRunInfo(1, 1), d)
	if m := c.Charts[0].Marks; len(m) != 1 || m[0].X != 4 || m[0].Name != "3.0 removed" {
		t.Errorf("marks %+v", m)
	}
	var b, table strings.Builder
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	if err := degradationTable(&table, d); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"all up", "3.0 removed", "48.0"} {
		if !strings.Contains(b.String(), s) || !strings.Contains(table.String(), s) {
			t.Errorf("no %q", s)
		}
	}
}
