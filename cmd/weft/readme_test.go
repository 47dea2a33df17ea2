package main

import (
	"fmt"
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
	// It is asked at once; of one that runs beside the next ones, at its block's end, so that
	// they do not depend on a reader who looks.
	done string
}

// beside says that it runs beside those that follow.
func (s readmeStep) beside() bool { return strings.HasSuffix(s.command, "&") }

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
		{command: "weft lab agents &", done: "weft lab status | grep -q 'agents run on 20 of 20 switches'"},
		{command: "weft host --print-config > /run/lab.yaml"},
		{command: "weft lab exec h0.0.2 -- weft host --config /run/lab.yaml &", done: carries("h0.0.2")},
		{command: "weft lab exec h3.1.3 -- weft host --config /run/lab.yaml &", done: carries("h3.1.3")},
		{command: "weft lab exec h3.1.3 -- python3 -m http.server -d /usr/local/bin 80 &",
			done: "weft lab exec h3.1.3 -- curl -sI http://10.3.1.3/"},
		{command: "weft lab exec h0.0.2 -- weft status --ready --wait 1m"},
		{command: "weft lab exec h3.1.3 -- weft status --ready --wait 1m"},
		{command: "weft lab exec h0.0.2 -- curl --retry 9 --retry-connrefused -o /dev/null http://10.3.1.3/weft"},
		{command: "weft lab exec h3.1.3 -- weft status"},
	},
	{
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
		{command: "mkdir -p /etc/weft", at: readmeHost},
		{command: "[ -e /etc/weft/host.yaml ] || weft host --print-config > /etc/weft/host.yaml", at: readmeHost},
		{command: "weft host", at: readmeHost, stays: true, done: "weft status"},
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
			if (s.stays || s.beside()) && s.done == "" {
				t.Errorf("%s: nothing says whether it works", s.command)
			}
		}
		want = append(want, list)
	}
	if got := shellCommands(string(page)); !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("README's shell blocks are\n%s\nreadme, of which each command is run, has\n%s", inLines(got), inLines(want))
	}
}

// All of README's blocks are of kinds that a test looks at, and no command is where none does.
func TestReadme_blocks(t *testing.T) {
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range wrongBlocks(string(page)) {
		t.Error(wrong)
	}
	for page, want := range map[string]int{
		"```sh\nweft demo\n```\n\n```go\nx := 1\n```\n\n```\n1 2\n```\nweft is a word\n": 0,
		"```bash\nweft demo\n```\n":          2,
		"```sh \nweft demo\n```\n":           2,
		"```sh\nweft demo\n``` \n":           1,
		" ```sh\nweft demo\n```\n":           2,
		"````\nweft demo\n````\n":            3,
		"~~~sh\nls\n~~~\n":                   2,
		"```\nweft demo\n```\n":              1,
		"```\n$ go test ./...\n```\n":        1,
		"text\n\n    weft demo\n":            1,
		"text\n\n\tgo run ./cmd/weft demo\n": 1,
		"```sh\nweft demo\n":                 1,
	} {
		if got := wrongBlocks(page); len(got) != want {
			t.Errorf("%q: %d wrong lines, want %d: %q", page, len(got), want, got)
		}
	}
}

// wrongBlocks says what is wrong with a page's blocks, line by line.
func wrongBlocks(page string) (all []string) {
	kinds := []string{"sh", "yaml", "go", ""}
	kind, inside := "", false
	for number, line := range strings.Split(page, "\n") {
		wrong := func(why string) { all = append(all, fmt.Sprintf("line %d: %q: %s", number+1, line, why)) }
		trimmed := strings.TrimLeft(line, " \t")
		fence := strings.HasPrefix(trimmed, "```")
		switch {
		case strings.HasPrefix(trimmed, "~~~"):
			wrong("write ```")
		case fence && inside:
			if line != "```" {
				wrong("a block ends with ``` alone")
			}
			inside = false
		case fence:
			kind, inside = strings.TrimPrefix(line, "```"), true
			if !slices.Contains(kinds, kind) {
				wrong("a block begins with ```sh, ```yaml, ```go or ```, and nothing more")
			}
		case inside && kind != "" && slices.Contains(kinds, kind):
		case inside || strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t"):
			if command := strings.TrimPrefix(trimmed, "$ "); strings.HasPrefix(command, "weft ") || strings.HasPrefix(command, "go ") {
				wrong("a command belongs into a block that begins with ```sh")
			}
		}
	}
	if inside {
		all = append(all, "the last block does not end")
	}
	return all
}

func inLines(blocks [][]string) string {
	var b strings.Builder
	for _, list := range blocks {
		b.WriteString(strings.Join(list, "\n") + "\n\n")
	}
	return b.String()
}
