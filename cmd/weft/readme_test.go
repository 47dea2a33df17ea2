package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// readmeStep is how TestReadme_run goes about a command of README.
type readmeStep struct {
	command string // as README has it, without its comment
	// run is what runs in its place, why the reason. "": the command itself.
	run, why string
	// at is the lab's host where it runs, as the machine of a reader who has a fabric. "": in no
	// host.
	at string
	// stays says that it runs until it is interrupted, as in a terminal of its own. It ends
	// with its block.
	stays bool
	// done, if not "", is a command of the shell that succeeds once this one has done its work.
	done string
}

// readmeHost is where the blocks run that are for a host of a fabric.
const readmeHost = "h0.0.2"

// carries succeeds when a host sends by paths.
func carries(host string) string {
	return "weft lab exec " + host + " -- weft status --ready"
}

// readme has all commands of README's shell blocks, block by block.
var readme = [][]readmeStep{
	{
		{command: "go run ./cmd/weft demo",
			run: "go run ./cmd/weft demo --policies kernel-ecmp,drb --warmup 300ms --duration 700ms --skip-failover",
			why: "nine rows and a spine's death take two minutes: WEFT_TESTS=long runs them"},
		{command: "go test ./...", run: `grep -q '^plain() { go test ./\.\.\.; }$' .ci/run`,
			why: "this test is a part of it: CI runs it as it stands there"},
	},
	{
		{command: "go build -o /usr/local/bin/ ./cmd/weft"},
		{command: "weft lab up --topology fat-tree:k=4 --rate 200 --burst 20000"},
		{command: "weft lab agents &"},
		{command: "mkdir -p /etc/weft && weft host --print-config > /etc/weft/host.yaml"},
		{command: "weft lab exec h0.0.2 -- weft host &", done: carries("h0.0.2")},
		{command: "weft lab exec h3.1.3 -- weft host &", done: carries("h3.1.3")},
		{command: "weft lab exec h3.1.3 -- python3 -m http.server -d /usr/local/bin 80 &",
			done: "weft lab exec h3.1.3 -- curl -sI http://10.3.1.3/"},
		{command: "weft lab exec h0.0.2 -- curl -o /dev/null http://10.3.1.3/weft"},
		{command: "weft lab exec h3.1.3 -- weft status"},
		{command: "weft lab fail a2.2-c1.1", done: "weft lab status | grep -q 'a2.2-c1.1 FAILED'"},
		{command: "weft lab status"},
		{command: "weft lab ui", stays: true, done: "curl -sf http://127.0.0.1:9470/api/frame | grep -q '\"links\":\\['"},
		{command: "weft lab down"},
	},
	{
		{command: "weft paths --policy drb --from 10.0.0.2 --to 10.3.1.3 -n 4"},
		{command: "weft plan --node a2.2"},
	},
	{
		{command: "weft host --print-config > /etc/weft/host.yaml", at: readmeHost},
		{command: "weft host --config /etc/weft/host.yaml", at: readmeHost, stays: true, done: "weft status"},
		{command: "weft status", at: readmeHost},
		{command: "weft doctor", at: readmeHost, run: "weft doctor || [ $? = 1 ]",
			why: "1 says that it has found something: here, peers that run no weft"},
		{command: "weft blame", at: readmeHost},
		{command: "weft ui", at: readmeHost, stays: true, done: "curl -sf http://127.0.0.1:9470/api/frame | grep -q '\"links\":\\['"},
	},
}

// shellCommands returns the commands of a page's shell blocks, block by block.
func shellCommands(page string) (blocks [][]string) {
	for _, block := range shellBlock.FindAllStringSubmatch(page, -1) {
		var list []string
		for line := range strings.Lines(block[1]) {
			line, _, _ = strings.Cut(line, " #")
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				list = append(list, line)
			}
		}
		blocks = append(blocks, list)
	}
	return blocks
}

// Every command that README tells its reader to run is run by TestReadme_run, in README's order, or
// something in its place that readme gives a reason for.
func TestReadme_everyCommandRuns(t *testing.T) {
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var want [][]string
	for _, block := range readme {
		var list []string
		for _, s := range block {
			list = append(list, s.command)
			if (s.run == "") != (s.why == "") {
				t.Errorf("%s: what runs in its place, and why, go together", s.command)
			}
			if s.stays && s.done == "" {
				t.Errorf("%s: nothing says whether it works", s.command)
			}
		}
		want = append(want, list)
	}
	if got := shellCommands(string(page)); !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("README's shell blocks are\n%s\nreadme, of which each command is run, has\n%s", inLines(got), inLines(want))
	}
}

func inLines(blocks [][]string) string {
	var b strings.Builder
	for _, list := range blocks {
		b.WriteString(strings.Join(list, "\n") + "\n\n")
	}
	return b.String()
}
