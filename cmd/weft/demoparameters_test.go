package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// demoPage runs a short demo in memory and returns the text of its report.
func demoPage(t *testing.T, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.html")
	mustWeft(t, append([]string{"demo", "--fabric", "memory", "--rate", "2", "--warmup", "0s", "--duration", "100ms", "--report", file}, args...)...)
	page, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	var text strings.Builder
	for z := html.NewTokenizer(page); ; {
		switch z.Next() {
		case html.ErrorToken:
			return strings.Join(strings.Fields(text.String()), " ")
		case html.TextToken:
			text.WriteString(z.Token().Data + " ")
		}
	}
}

// The report states what was run: other flags, other words, and none of the defaults.
func TestDemo_reportStatesTheParameters(t *testing.T) {
	for _, c := range []struct {
		args       []string
		want, wont []string
	}{
		{[]string{"--policies", "presto,drb"},
			[]string{"each flowcell of 4 KB by round robin", "4,096 bytes", "ipip, 20 bytes a packet", "presto, holds", "Measured 100ms after 0s", "one stream per host", "89.5", "Fig. 6a", "commit"},
			[]string{"64 KB"}},
		{[]string{"--policies", "presto,auto,letflow", "--flowcell", "8192", "--encap", "srv6", "--resequencer", "juggler", "--hold", "77ms", "--seed", "5", "--permutations", "2"},
			[]string{"each flowcell of 8 KB by round robin", "8,192 bytes", "srv6, ", "juggler, holds", "to 77ms", "2 permutations", "Seed 5 to 6"},
			[]string{"64 KB", "4,096", "ipip", "the paper’s", "(20 bytes a packet"}},
	} {
		text := demoPage(t, c.args...)
		for _, w := range c.want {
			if !strings.Contains(text, w) {
				t.Errorf("%v: no %q in\n%.3000s", c.args, w, text)
			}
		}
		for _, w := range c.wont {
			if strings.Contains(text, w) {
				t.Errorf("%v: %q in\n%.3000s", c.args, w, text)
			}
		}
	}
}

// Who sends to whom may be said by a file, in the words of weft sim run.
func TestDemo_traffic(t *testing.T) {
	file := filepath.Join(t.TempDir(), "traffic.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"demo", "--fabric", "memory", "--rate", "2", "--warmup", "50ms", "--duration", "100ms", "--report=", "--policies", "drb", "--traffic", file}
	for text, want := range map[string]string{
		"traffic: {matrix: stride, stride: 4}\n":                              "16 streams, matrix stride",
		"traffic: {matrix: incast, servers: 5}\n":                             "5 streams, matrix incast",
		"traffic: {matrix: all-to-all}\n":                                     "240 streams, matrix all-to-all",
		"traffic:\n  matrix: list\n  list:\n  - {from: h0.0.2, to: h3.1.3}\n": "1 streams, matrix list",
		"traffic: {matrix: staggered, rack: 0.5, pod: 0.3}\n":                 "16 streams, matrix staggered",
		"traffic:\n  matrix: other-racks\n  at_once: 2\n":                     "32 streams, matrix other-racks",
	} {
		write(text)
		if out := mustWeft(t, args...); !strings.Contains(out, want) {
			t.Errorf("%s: no %q in\n%s", text, want, out)
		}
	}
	// A stream alone has all that its host's link carries.
	write("traffic:\n  matrix: list\n  list:\n  - {from: h0.0.2, to: h3.1.3}\n")
	rows := demoJSON(t, "--fabric", "memory", "--rate", "3", "--policies", "drb", "--traffic", file)
	if o := rows["drb"]; o.PercentOfIdeal < 85 || o.IdealMbit < 2.8 || o.IdealMbit > 3 {
		t.Errorf("one stream: %+v", o)
	}
	line := strings.Join(args, " ")
	write("traffic: {matrix: strid}\n")
	wantError(t, line, "traffic.yaml:1", "traffic.matrix", "did you mean", "stride")
	write("traffic: {matrix: stride, stride: 16}\n")
	wantError(t, line, "traffic.stride", "no multiple of the 16 hosts")
	write("traffic: {matrix: stride, stride: 4, loads: [0.5]}\n")
	wantError(t, line, "loads", "unknown key")
	write("traffic: {matrix: stride, stride: 4, servers: 3}\n")
	wantError(t, line, "traffic.servers", "has no effect")
	write("traffic:\n  matrix: list\n  list:\n  - {from: h0.0.2, to: h9.1.3}\n")
	wantError(t, line, "h9.1.3", "no such host")
	write("traffic: {matrix: uniform, at_once: 1000}\n")
	wantError(t, line, "16000 streams")
}
