package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// bounces returns the first words of the lines after the title.
func bounces(out string) []string {
	var b []string
	for line := range strings.Lines(out) {
		b = append(b, strings.Fields(line)[0])
	}
	return b[1:]
}

func TestPaths_issueExample(t *testing.T) {
	args := "paths --topology fat-tree:k=4 --from 10.0.0.2 --to 10.3.1.3 -n 4 --start 0 --policy "
	for policy, want := range map[string]string{
		"drb": "3.0 3.2 3.1 3.3",
		"rrb": "3.0 3.1 3.2 3.3",
	} {
		out := mustWeft(t, strings.Fields(args+policy)...)
		if got := strings.Join(bounces(out), " "); got != want {
			t.Errorf("%s: %s, want %s", policy, got, want)
		}
	}
	out := mustWeft(t, strings.Fields(args+"drb")...)
	want := "h0.0.2 (10.0.0.2) > e0.0 (10.0.0.1) > a0.3 (10.0.3.1) > c2.1 (10.4.2.1) > a3.3 (10.3.3.1) > e3.1 (10.3.1.1) > h3.1.3 (10.3.1.3)"
	if line := strings.Split(out, "\n")[2]; !strings.HasSuffix(line, want) {
		t.Errorf("second path is %q, want %q", line, want)
	}
}

// The order is worked out here from the definition: step r, written with the
// two digits q·h+s of base h = k/2, takes path s·h+q; its first digit is the
// aggregation switch, its second the core in that switch's group.
func TestPaths_digitReversal(t *testing.T) {
	for _, k := range []int{4, 6, 24} {
		h := k / 2
		out := mustWeft(t, "paths", "--json", "--topology", fmt.Sprintf("fat-tree:k=%d", k),
			"--from", "h0.1.2", "--to", fmt.Sprintf("10.%d.0.3", k-1), "--start", "1", "-n", fmt.Sprint(h*h+1))
		var got []step
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err)
		}
		if len(got) != h*h+1 {
			t.Fatalf("k=%d: %d steps, want %d", k, len(got), h*h+1)
		}
		for i, s := range got {
			r := (i + 1) % (h * h)
			agg, core := r%h, r/h
			hops := []string{"h0.1.2", "e0.1", fmt.Sprintf("a0.%d", h+agg), fmt.Sprintf("c%d.%d", agg+1, core+1),
				fmt.Sprintf("a%d.%d", k-1, h+agg), fmt.Sprintf("e%d.0", k-1), fmt.Sprintf("h%d.0.3", k-1)}
			links := []string{"h0.1.2-e0.1", "e0.1-" + hops[2], hops[2] + "-" + hops[3],
				hops[4] + "-" + hops[3], hops[5] + "-" + hops[4], hops[6] + "-" + hops[5]}
			if want := fmt.Sprintf("3.%d", agg*h+core); s.Bounce != want || !slices.Equal(s.Hops, hops) || !slices.Equal(s.Links, links) {
				t.Fatalf("k=%d, step %d: %+v, want %s %v %v", k, r, s, want, hops, links)
			}
		}
	}
}

func TestPaths_samePod(t *testing.T) {
	out := mustWeft(t, "paths", "--from", "10.2.0.2", "--to", "10.2.1.2")
	if got := strings.Join(bounces(out), " "); got != "a2.2 a2.3" {
		t.Errorf("bounces at %s", got)
	}
}

func TestPaths_sameRack(t *testing.T) {
	out := mustWeft(t, "paths", "--from", "10.2.0.2", "--to", "10.2.0.3")
	if !strings.Contains(out, "no bounce") || strings.Join(bounces(out), " ") != "direct" {
		t.Errorf("got %s", out)
	}
	out = mustWeft(t, "paths", "--json", "--from", "10.2.0.2", "--to", "10.2.0.3")
	var got []step
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Bounce != "" || strings.Join(got[0].Hops, " ") != "h2.0.2 e2.0 h2.0.3" {
		t.Errorf("got %+v", got)
	}
}

func TestPaths_randomSaysSo(t *testing.T) {
	for _, policy := range []string{"rb", "ecmp", "rand", "luopan", "conga", "local", "drill", "reps"} {
		args := strings.Fields("paths --from h0.0.2 --to h3.1.3 -n 64 --policy " + policy + " --seed")
		a, b, c := mustWeft(t, append(args, "7")...), mustWeft(t, append(args, "7")...), mustWeft(t, append(args, "8")...)
		if !strings.Contains(a, "random") {
			t.Errorf("%s: does not say that the order is random:\n%s", policy, a)
		}
		if a != b {
			t.Errorf("%s: one seed, two orders", policy)
		}
		if slices.Equal(bounces(a), bounces(c)) {
			t.Errorf("%s: two seeds, one order", policy)
		}
	}
}

func TestPaths_awarePoliciesSayWhatDecides(t *testing.T) {
	for policy, want := range map[string]string{
		"luopan": "luopan: least congested sample for every flowcell of 64 KB",
		"conga":  "conga: least congested path for every flowlet",
		"drill":  "drill: least own backlog for every packet",
		"reps":   "reps: paths of acknowledged packets for every packet",
	} {
		out := mustWeft(t, strings.Fields("paths --from h0.0.2 --to h3.1.3 --policy "+policy)...)
		title, _, _ := strings.Cut(out, "\n")
		if !strings.HasPrefix(title, want) || !strings.Contains(title, "until it is known random, here from seed 1") {
			t.Errorf("%s: %q", policy, title)
		}
	}
	if out := mustWeft(t, strings.Fields("paths --from h0.0.2 --to h3.1.3 --policy rand")...); strings.Contains(out, "congestion") {
		t.Errorf("rand goes by congestion: %s", out)
	}
}

func TestPaths_bad(t *testing.T) {
	const pair = "paths --from h0.0.2 --to h3.1.3 "
	wantError(t, pair+"--policy fastest", "fastest", "drb", "rrb", "ecmp")
	wantError(t, pair+"--topology fat-tree:k=3", "3", "even")
	wantError(t, pair+"-n 0", "-n 0", "1 to")
	wantError(t, pair+"-n 99999999", "99999999")
	wantError(t, pair+"--start -1", "--start -1")
	wantError(t, "paths --to h3.1.3", "--from is missing")
	wantError(t, "paths --from h0.0.2 --to 10.9.9.9", "--to", "10.9.9.9", "fat-tree:k=4")
	wantError(t, "paths --from h0.0.9 --to h3.1.3", "--from", "h0.0.9", "hPOD.SWITCH.ID")
	wantError(t, "paths --from a2.2 --to h3.1.3", "a2.2 is a switch")
	wantError(t, "paths --from h3.1.3 --to 10.3.1.3", "both h3.1.3")
}
