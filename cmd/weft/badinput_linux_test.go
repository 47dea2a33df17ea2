package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"weft/internal/exitcode"
	"weft/internal/kernel/kerneltest"
	"weft/internal/shortage"
)

// badInput is a wrong input: a command line, with the text of the file that FILE in it stands
// for. Its message must say all of want: what is wrong, where, and what to do. The rows are in
// badinput_rows_linux_test.go.
type badInput struct {
	args string // "" in quotes is an empty argument
	file string
	code int
	want []string
}

// extensionOf is how FILE's name ends.
func (b badInput) name() string {
	switch {
	case strings.HasPrefix(b.args, "switch"):
		return "switch.yaml"
	case strings.HasPrefix(b.args, "scheduler"):
		return "scheduler.yaml"
	case strings.HasPrefix(b.args, "host"):
		return "host.yaml"
	case strings.Contains(b.args, "from-lldp"):
		return "leaf1.json"
	}
	return "fabric.yaml"
}

// run returns the message as weft prints it, and the exit status.
func (b badInput) run(t *testing.T) (message string, code int) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir) // where a command that writes a file by default may do so
	file := filepath.Join(dir, b.name())
	if b.file != "" {
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(b.file, "DIR", dir)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var args []string
	for _, a := range strings.Fields(b.args) {
		a = strings.ReplaceAll(strings.ReplaceAll(a, "FILE", file), "DIR", dir)
		args = append(args, strings.ReplaceAll(a, `""`, ""))
	}
	_, err := weft(t, args...)
	if err == nil {
		return "", exitcode.OK
	}
	return strings.ReplaceAll(shortage.Explain(err).Error(), dir+"/", ""), exitcode.Of(err)
}

var (
	// jargon are words of Go, of its libraries and of system calls, which say nothing to users.
	jargon = regexp.MustCompile(`strconv|Atoi|ParseInt|ParseFloat|[Uu]nmarshal|(?:^|[^.\w-])(?:yaml|json): |%!|goroutine|panic|runtime error|arg\(s\)|invalid argument|flag needs|shorthand|` +
		`\b(open|stat|lstat|read|connect|dial|mkdir|lookup|getsockopt) [./]|dial unix|no such file or directory|0x[0-9a-f]{6}|\[\]|<nil>|netlink|errno|context deadline|context canceled|\bEOF\b|interface \{\}|\*[a-z]+\.[A-Z]`)
	// advice are words that say what to do, or which values there are.
	advice = regexp.MustCompile(`\b(must|want|use|write|give|name|choose|remove|set|take|takes|add|lower|raise|leave|needs?|known|did you mean|known:|such as|begin|check|make|makes|put|run|ask|is .* running|one of|it has|its hosts|first host has|there are|names? another|download|load|close|align|from .* to)\b|has 0|weft [a-z]+`)
	// place is where it is: a flag, a file with its line, an argument in quotes, or a command.
	place = regexp.MustCompile(`--[a-z]|(^|[ (])-[a-z]\b|\.(yaml|json|key|yml|sock)\b|"[^"]*"|^weft\b|^lab |^status|^topology|^bench |^experiment|^address`)
	// inFile is how messages about the text of a file begin.
	inFile = regexp.MustCompile(`^(--[a-z-]+: )?\S+\.(yaml|json):\d+: `)
)

// defects says what a message lacks, whatever it is about.
func defects(message string) (all []string) {
	if m := jargon.FindString(message); m != "" {
		all = append(all, fmt.Sprintf("has the programmers' word %q", m))
	}
	if strings.Contains(message, "\n") {
		all = append(all, "has several lines")
	}
	if len(message) > 600 {
		all = append(all, fmt.Sprintf("has %d letters", len(message)))
	}
	if n := strings.Count(message, ". ") + strings.Count(message, "? "); n > 1 {
		all = append(all, "has more than two sentences")
	}
	if !place.MatchString(message) {
		all = append(all, "does not say where")
	}
	if !advice.MatchString(message) {
		all = append(all, "does not say what to do")
	}
	return all
}

// check runs a wrong input.
func (b badInput) check(t *testing.T) {
	t.Helper()
	message, code := b.run(t)
	if code != b.code {
		t.Errorf("exit status %d, want %d: %s", code, b.code, message)
	}
	for _, w := range b.want {
		if !strings.Contains(message, w) {
			t.Errorf("does not say %q: %s", w, message)
		}
	}
	for _, f := range defects(message) {
		t.Errorf("%s: %s", f, message)
	}
	if b.file != "" && strings.Contains(b.args, "FILE") && !inFile.MatchString(message) && len(b.want) > 0 && strings.Contains(b.want[0], ".yaml:") {
		t.Errorf("does not begin with the file and the line: %s", message)
	}
}

func TestBadInputs(t *testing.T) {
	if len(badInputs) < 120 {
		t.Fatalf("%d rows, want 120 or more", len(badInputs))
	}
	for _, b := range badInputs {
		name := b.args
		if b.file != "" {
			name += " " + b.file
		}
		t.Run(name, b.check)
	}
}

// Every command has a row, so that a new one gets some.
func TestBadInputs_haveAllCommands(t *testing.T) {
	root := newRootCmd()
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		path := strings.TrimPrefix(strings.TrimPrefix(c.CommandPath(), "weft"), " ")
		if !c.Hidden && !slices.ContainsFunc(badInputs, func(b badInput) bool { return b.args == path || strings.HasPrefix(b.args, path+" ") }) {
			t.Errorf("weft %s has no row in badInputs", path)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	for _, c := range root.Commands() {
		walk(c)
	}
}

// The checker itself finds what it is for.
func TestFaults(t *testing.T) {
	good := `--rate=x: must be a number, such as 8`
	if f := defects(good); len(f) > 0 {
		t.Errorf("%q: %q", good, f)
	}
	for message, want := range map[string]string{
		`user "x": strconv.Atoi: parsing "x": invalid syntax; create it, or name another`: "strconv",
		"--x: requires at least 1 arg(s), only received 0; give one":                      "arg(s)",
		"host.yaml:2: not YAML: yaml: line 3: oops; write it anew":                        "yaml: ",
		"--file: open /etc/x: no such file; name one":                                     "open /",
		"--x: must be\none of a, b":                                                       "several lines",
		"something is wrong; set it right":                                                "where",
		"--rate is odd":                                                                   "what to do",
		"--rate is odd. So it is. It must be even.":                                       "two sentences",
		"--kinds: known: []":                                                              "[]",
		"--n: %!d(string=x); give a number":                                               "%!",
	} {
		if f := defects(message); !strings.Contains(strings.Join(f, "; "), want) {
			t.Errorf("%q: %q, want %q", message, f, want)
		}
	}
}

// A command that needs others behind it is a wrong command line: its help is on standard
// error, and nothing on standard output. With --help it is right.
func TestExit_groups(t *testing.T) {
	for _, group := range []string{"", "bench", "lab", "sim", "topology", "completion"} {
		c := program(t, strings.Fields(group)...)
		var out, errs strings.Builder
		c.Stdout, c.Stderr = &out, &errs
		err := c.Run()
		if c.ProcessState == nil || c.ProcessState.ExitCode() != exitcode.Usage {
			t.Fatalf("weft %s: %v, want exit status 2", group, err)
		}
		if out.Len() > 0 || !strings.Contains(errs.String(), "Usage:") || !strings.Contains(errs.String(), "a command is missing") {
			t.Errorf("weft %s prints %q, and on standard error %q", group, out.String(), errs.String())
		}
		help := program(t, append(strings.Fields(group), "--help")...)
		if text, err := help.Output(); err != nil || !strings.Contains(string(text), "Usage:") {
			t.Errorf("weft %s --help: %v, %q", group, err, text)
		}
	}
}

// Exit statuses of the whole program: what runs says success, what fails without a user's or
// the system's fault says failure.
func TestExit_ofTheProgram(t *testing.T) {
	for args, want := range map[string]int{
		"version":                             exitcode.OK,
		"help":                                exitcode.OK,
		"lab -h":                              exitcode.OK,
		"status --socket /nonexistent/s.sock": exitcode.Failed,
		"plan --rate":                         exitcode.Usage,
		"host --check --config /nonexistent":  exitcode.Usage,
	} {
		c := program(t, strings.Fields(args)...)
		out, err := c.CombinedOutput()
		if c.ProcessState == nil || c.ProcessState.ExitCode() != want {
			t.Errorf("weft %s: %v, want exit status %d: %s", args, err, want, out)
		}
	}
}

// Without privileges there is nothing to do here: that is neither a failure nor a wrong command.
func TestExit_withoutPrivileges(t *testing.T) {
	runtime.LockOSThread() // whose capabilities are meant
	defer runtime.UnlockOSThread()
	for _, args := range []string{"lab up --name few", "bench throughput --rounds 1", "demo --fabric netns --report DIR/x.html"} {
		err := kerneltest.WithCapabilities(func() error {
			message, code := badInput{args: args}.run(t)
			if code != exitcode.Absent || !strings.Contains(message, "no CAP_") || !strings.Contains(message, "root") {
				return fmt.Errorf("exit status %d: %s", code, message)
			}
			if f := defects("weft " + args + ": " + message); len(f) > 0 {
				return errors.New(strings.Join(f, "; ") + ": " + message)
			}
			return nil
		})
		if err != nil {
			t.Errorf("weft %s: %v", args, err)
		}
	}
}
