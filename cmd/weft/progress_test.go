package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"weft/bench/papers"
)

func TestTimeLeft(t *testing.T) {
	for _, c := range []struct {
		elapsed    time.Duration
		done, kept float64
		want       time.Duration
	}{
		{time.Minute, 0, 0, -1},
		{time.Minute, 0.004, 0, -1},
		{time.Minute, 0.5, 0, time.Minute},
		{time.Minute, 0.5, 0.4, 5 * time.Minute},
		{time.Minute, 1, 0.9, 0},
		{time.Hour + 29*time.Second, 0.5, 0, time.Hour},
		{time.Second, 0.501, 0.5, -1},
	} {
		if got := timeLeft(c.elapsed, c.done, c.kept); got != c.want {
			t.Errorf("%v, %g done, %g kept: %v, want %v", c.elapsed, c.done, c.kept, got, c.want)
		}
	}
}

// testProgress is work whose clock is in the test's hands.
func testProgress(mode string, now *time.Duration) (*progress, *bytes.Buffer) {
	var b bytes.Buffer
	out := &progressOutput{mode: mode, w: &b, command: "weft test", now: func() time.Time { return time.Unix(0, 0).Add(*now) }}
	return newProgress(withProgress(context.Background(), out), "first"), &b
}

func events(t *testing.T, b *bytes.Buffer) (all []progressEvent) {
	t.Helper()
	d := json.NewDecoder(b)
	d.DisallowUnknownFields()
	for d.More() {
		var e progressEvent
		if err := d.Decode(&e); err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		all = append(all, e)
	}
	return all
}

// Parts count by what they weigh, and the time left is that of the rest at the same speed.
func TestProgress_partsByWeight(t *testing.T) {
	now := time.Duration(0)
	p, b := testProgress(progressJSON, &now)
	p.plan(10, 30, 60)
	p.begin("build")
	now = 10 * time.Second
	p.begin("run")
	now = 25 * time.Second
	p.set(1, 2)
	now = 40 * time.Second
	p.begin("fail")
	now = 100 * time.Second
	p.set(1, 1)
	p.end()
	p.end() // twice is once
	p.set(1, 2)
	want := []progressEvent{
		{Doing: "build", Part: 1, Percent: 0},
		{Doing: "run", Part: 2, Percent: 10, ElapsedS: 10, LeftS: seconds64(90)},
		{Doing: "run", Part: 2, Percent: 25, ElapsedS: 25, LeftS: seconds64(75)},
		{Doing: "fail", Part: 3, Percent: 40, ElapsedS: 40, LeftS: seconds64(60)},
		{Doing: "fail", Part: 3, Percent: 100, ElapsedS: 100, LeftS: seconds64(0)},
		{Doing: "fail", Part: 3, Percent: 100, ElapsedS: 100, LeftS: seconds64(0), Ended: true},
	}
	got := events(t, b)
	for i := range want {
		want[i].Command, want[i].Parts = "weft test", 3
	}
	if g, w := fmt.Sprint(texts(got)), fmt.Sprint(texts(want)); g != w {
		t.Errorf("events\n%s\nwant\n%s", g, w)
	}
}

func seconds64(s float64) *float64 { return &s }

func texts(list []progressEvent) (all []string) {
	for _, e := range list {
		text, _ := json.Marshal(e)
		all = append(all, "\n"+string(text))
	}
	return all
}

// Equal parts, as packages count them, and batches of simulations.
func TestProgress_countedByOthers(t *testing.T) {
	now := time.Duration(0)
	p, b := testProgress(progressJSON, &now)
	p.of("drb", 0, 4)
	now = 30 * time.Second
	p.of("presto", 2, 4)
	p.beside("building")(1, 2)
	now += time.Minute
	p.beside("building")(1, 2)
	p.end()
	got := events(t, b)
	if len(got) != 4 || got[1].Part != 3 || got[1].Percent != 50 || *got[1].LeftS != 30 || got[2].Doing != "presto: building" || got[2].Percent != 50 {
		t.Errorf("%v", texts(got))
	}
	p, b = testProgress(progressJSON, &now)
	p.units(papers.Progress{Units: 20, Done: 10, PerMille: 600, Kept: 400})
	now += 10 * time.Second
	p.units(papers.Progress{Units: 20, Done: 11, PerMille: 700, Kept: 400})
	p.end()
	if got := events(t, b); len(got) != 3 || got[1].Part != 12 || got[1].Parts != 20 || got[1].Percent != 70 || *got[1].LeftS != 10 {
		t.Errorf("%v", texts(got))
	}
}

// A bar is as wide as the terminal at most, and away before a note is written.
func TestProgress_bar(t *testing.T) {
	for columns := 1; columns < 140; columns++ {
		for _, done := range []float64{0, 0.333, 1} {
			s := progressState{doing: "drb, permutation 2 of 3, with a long name behind", part: 3, parts: 12, done: done, left: 80 * time.Second}
			line := s.bar(columns)
			if most := max(columns, fewestLetter); len(line) > most {
				t.Fatalf("%d columns: %q", columns, line)
			}
			if full := strings.Count(line, "#"); columns >= roomForABar && full != int(math.Floor(barLetters*done)) {
				t.Errorf("%d columns, %g done: %q", columns, done, line)
			}
			if columns >= roomForABar && !strings.Contains(line, "part 3 of 12  1m20s left") {
				t.Errorf("%d columns: %q", columns, line)
			}
		}
	}
	now := 0 * time.Second
	p, b := testProgress(progressBar, &now)
	p.set(1, 4)
	if b.Len() > 0 {
		t.Errorf("within the first second: %q", b)
	}
	now = 2 * time.Second
	p.set(1, 2)
	drawn := b.String()
	fmt.Fprintln(p.above(b), "note")
	if !strings.HasPrefix(drawn, "\r[############------------]  50 %") || !strings.HasSuffix(b.String(), " \rnote\n") {
		t.Errorf("%q, then %q", drawn, b)
	}
	b.Reset()
	p.end()
	if b.Len() > 0 {
		t.Errorf("the bar was away already: %q", b)
	}
}

// Commands tell as --progress says; who does not look gets nothing.
func TestProgress_ofCommands(t *testing.T) {
	args := []string{"demo", "--fabric", "memory", "--policies", "ecmp,drb", "--rate", "2", "--warmup", "0s", "--duration", "100ms", "--report", ""}
	if out := mustWeft(t, args...); strings.Contains(out, "left") {
		t.Errorf("no terminal, but:\n%s", out)
	}
	out := mustWeft(t, append(args, "--progress", "json")...)
	var all []progressEvent
	for line := range strings.Lines(out) {
		var e progressEvent
		if strings.HasPrefix(line, "{") {
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Errorf("%v: %s", err, line)
			}
			all = append(all, e)
		}
	}
	if n := len(all); n < 3 || all[0].Part != 1 || all[0].Parts != 2 || !all[n-1].Ended || all[n-1].Percent != 100 || all[0].Command != "weft demo" {
		t.Errorf("%v", texts(all))
	}
	if out := mustWeft(t, append(args, "--progress", "lines")...); !strings.Contains(out, "part 2 of 2") {
		t.Errorf("lines:\n%s", out)
	}
	wantError(t, "demo --progress bars", "--progress=bars", "auto, lines, json, none")
}

// Every command that takes long has the flag.
func TestProgress_everyLongCommand(t *testing.T) {
	for _, name := range []string{"demo", "lab up", "sim run", "sim report", "sim mutants", "sim decide", "sim permutation", "sim fct"} {
		cmd, _, err := newRootCmd().Find(strings.Fields(name))
		if err != nil || cmd.Flags().Lookup("progress") == nil {
			t.Errorf("weft %s has no --progress: %v", name, err)
		}
	}
	for _, cmd := range newBenchCmd().Commands() {
		if !cmd.Hidden && cmd.Flags().Lookup("progress") == nil {
			t.Errorf("weft bench %s has no --progress", cmd.Name())
		}
	}
}
