package main

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weft/bench/papers"
	"weft/encap"
	"weft/policy"
)

// everyFlag calls f for each flag of each command that is not hidden.
func everyFlag(f func(cmd *cobra.Command, flag *pflag.Flag)) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		visit := func(flag *pflag.Flag) {
			if !flag.Hidden && flag.Name != "help" {
				f(cmd, flag)
			}
		}
		cmd.LocalNonPersistentFlags().VisitAll(visit)
		cmd.PersistentFlags().VisitAll(visit)
		for _, sub := range cmd.Commands() {
			if !sub.Hidden {
				walk(sub)
			}
		}
	}
	walk(newRootCmd())
}

// A shell knows of each flag what it can be, or that nobody does.
func TestCompletion_everyFlag(t *testing.T) {
	used, all := make(map[string]bool), make(map[string]bool)
	everyFlag(func(cmd *cobra.Command, f *pflag.Flag) {
		whole := commandPath(cmd) + " --" + f.Name
		used[whole], used[f.Name] = true, true
		if _, ok := completionOf(cmd, f); !ok {
			t.Errorf("weft %s: nobody says what completes it: add a row to flagValues, or call its value `file` or `directory` in its help", whole)
		}
		all[commandPath(cmd)] = true
	})
	if runtime.GOOS == "linux" {
		for key := range flagValues {
			if !used[key] {
				t.Errorf("flagValues has %q, but no command does", key)
			}
		}
		for path := range arguments {
			if _, rest, err := newRootCmd().Find(strings.Fields(path)); err != nil || len(rest) > 0 {
				t.Errorf("arguments has %q, but there is no such command (%v)", path, err)
			}
		}
	}
}

// completed asks as the scripts of shells do, and returns the words.
func completed(t *testing.T, args ...string) (words []string, directive string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(mustWeft(t, append([]string{"__complete"}, args...)...)), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ":") {
			return lines[:i], line
		}
	}
	t.Fatalf("weft __complete %q: %q has no directive", args, lines)
	return nil, ""
}

// Every flag whose values are known completes each of them whole, whatever its beginning is.
func TestCompletion_everyValue(t *testing.T) {
	asked := 0
	everyFlag(func(cmd *cobra.Command, f *pflag.Flag) {
		c, _ := completionOf(cmd, f)
		if c.values == nil {
			return
		}
		path := strings.Fields(commandPath(cmd))
		if path == nil {
			return
		}
		want := c.values(cmd)
		type answer struct {
			words     []string
			directive string
		}
		answers := make(map[string]answer) // by the beginning
		for _, v := range want {
			a, ok := answers[v[:1]]
			if !ok {
				a.words, a.directive = completed(t, slices.Concat(path, []string{"--" + f.Name, v[:1]})...)
				answers[v[:1]] = a
			}
			if asked++; !slices.Contains(a.words, v) || a.directive == ":0" {
				t.Errorf("weft %s --%s %s: %q (%s), want %s among them", commandPath(cmd), f.Name, v[:1], a.words, a.directive, v)
			}
			if len(want) > 60 {
				break
			}
		}
	})
	if asked < 200 {
		t.Errorf("%d values were asked for", asked)
	}
}

// What is completed is what commands take.
func TestCompletion_valuesAreTaken(t *testing.T) {
	for _, c := range []struct {
		args string
		want []string
	}{
		{"paths --policy ", policy.Names()},
		{"paths --encap ", []string{encap.CarrierIPIP.String(), encap.CarrierSRv6.String(), encap.CarrierMPLS.String()}},
		{"paths --from h3.1.", []string{"h3.1.2", "h3.1.3"}},
		{"paths --topology leaf-spine:leaves=2,spines=2,hosts=1 --to h", nil},
		{"plan --topology testdata/graph.yaml --node ", nil},
		{"plan --node c", []string{"c1.1", "c1.2", "c2.1", "c2.2"}},
		{"demo --policies drb,r", []string{"drb,rb", "drb,rrb", "drb,reps", "drb,rand"}},
		{"demo --policies drb,drb", nil},
		{"sim run thesis-t", nil},
		{"bench fct --traffic st", []string{"stride", "staggered"}},
		{"schema ver", []string{"version"}},
		{"bench scenarios drb-sk", []string{"drb-skew-0s", "drb-skew-20µs", "drb-skew-100µs", "drb-skew-500µs", "drb-skew-2ms", "drb-skew-100µs-loss-0.1%"}},
	} {
		args := strings.Split(c.args, " ")
		got, directive := completed(t, args...)
		switch {
		case c.args == "demo --policies drb,drb":
			if slices.Contains(got, "drb,drb") {
				t.Errorf("%s: %q, what is there is offered again", c.args, got)
			}
		case c.want == nil && len(got) == 0 || c.want != nil && !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(c.want))):
			t.Errorf("weft __complete %s: %q (%s), want %q", c.args, got, directive, c.want)
		}
	}
	for _, e := range experiments() {
		if _, err := papers.Select(experiments(), []string{e.Name}); err != nil {
			t.Error(err)
		}
	}
	if got, _ := completed(t, "sim", "run", ""); len(got) != len(experiments())+1 {
		t.Errorf("%d experiments are offered, there are %d, and all", len(got), len(experiments()))
	}
	_, err := weft(t, "lab", "up", "--name", "completion", "--balance", "x")
	rules := flagValues["lab up --balance"].values(nil)
	if err == nil {
		t.Fatal("--balance x is taken")
	}
	if runtime.GOOS == "linux" {
		for _, rule := range rules {
			if !strings.Contains(err.Error(), rule) {
				t.Errorf("--balance %s is offered, but: %v", rule, err)
			}
		}
		if n := strings.Count(err.Error()[strings.Index(err.Error(), "choose"):], ",") + 1; n != len(rules) {
			t.Errorf("%d rules are offered, and: %v", len(rules), err)
		}
	}
}

// Files are offered where no value begins so.
func TestCompletion_files(t *testing.T) {
	for _, args := range []string{"paths --topology gra", "host --config x", "status --socket x", "sim run ./x"} {
		if got, directive := completed(t, strings.Split(args, " ")...); len(got) != 0 || directive != ":0" {
			t.Errorf("weft __complete %s: %q, %s", args, got, directive)
		}
	}
	if _, directive := completed(t, "sim", "run", "--cache", ""); directive != ":16" {
		t.Error("a directory is wanted:", directive)
	}
}

// The manual is made of what weft commands prints: all that users see.
func TestCommands(t *testing.T) {
	out := mustWeft(t, "commands")
	for _, want := range []string{`"use": "fail LINK|NODE..."`, `"name": "print-config"`, `"use": "completion"`, `"shorthand": "o"`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s", want)
		}
	}
	for _, hidden := range []string{agentsCommand, `"use": "commands"`} {
		if strings.Contains(out, hidden) {
			t.Errorf("%s is hidden, but printed", hidden)
		}
	}
	keys := slices.Sorted(maps.Keys(arguments))
	if _, err := os.Stat(filepath.Join("schema", "commands.json")); err != nil || len(keys) == 0 {
		t.Error(err, keys)
	}
}
