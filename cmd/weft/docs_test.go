package main

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"weft/policy"
)

// guides returns the pages that users read, by their path from here.
func guides(t *testing.T) map[string]string {
	t.Helper()
	pages := make(map[string]string)
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../packaging/*.md", "../../examples/*/*.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v, %v", pattern, names, err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			pages[name] = string(b)
		}
	}
	return pages
}

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// commands returns the arguments of every call of weft in a page's shell blocks.
func commands(page string) (all [][]string) {
	for _, block := range shellBlock.FindAllStringSubmatch(page, -1) {
		for _, line := range strings.Split(block[1], "\n") {
			line, _, _ = strings.Cut(line, " #")
			line = strings.ReplaceAll(line, "&&", ";")
			for _, c := range regexp.MustCompile(`[;&|]`).Split(line, -1) {
				c, _, _ = strings.Cut(c, " >")
				c = strings.ReplaceAll(c, "'", "")
				words := strings.Fields(c)
				switch {
				case len(words) > 1 && words[0] == "weft":
					all = append(all, words[1:])
				case len(words) > 3 && strings.Join(words[:3], " ") == "go run ./cmd/weft":
					all = append(all, words[3:])
				}
			}
		}
	}
	return all
}

// quick are commands that need no privileges and little time, by their beginnings.
// They run whole; of others the flags are checked. TestLab and the tests of package
// internal/interop run those.
var quick = []string{"plan ", "paths --policy", "sim list", "host --print-config", "switch --print-config", "topology from-yaml"}

func TestGuides_commandsAreUnderstood(t *testing.T) {
	seen := 0
	for name, page := range guides(t) {
		for _, args := range commands(page) {
			if i := slices.Index(args, "graph.yaml"); i >= 0 {
				args[i] = "testdata/graph.yaml"
			}
			line := strings.Join(args, " ")
			seen++
			cmd, rest, err := newRootCmd().Find(args)
			if err == nil {
				err = cmd.ParseFlags(rest)
			}
			if err == nil {
				err = cmd.ValidateArgs(cmd.Flags().Args())
			}
			if err == nil && !cmd.Runnable() {
				t.Errorf("%s: weft %s: no such command", name, line)
			}
			for _, q := range quick {
				if err == nil && strings.HasPrefix(line, q) && !strings.Contains(line, "...") {
					_, err = weft(t, args...)
				}
			}
			if err != nil {
				t.Errorf("%s: weft %s: %v", name, line, err)
			}
		}
	}
	if seen < 40 {
		t.Errorf("only %d commands found", seen)
	}
}

// The packages that a page has its reader test or build are there, and so are the tests.
func TestGuides_goCommandsNameWhatThereIs(t *testing.T) {
	seen := 0
	for name, page := range guides(t) {
		for _, block := range shellBlock.FindAllStringSubmatch(page, -1) {
			for _, m := range regexp.MustCompile(`(?m)^go (?:test|vet|build)( [^#\n]*)`).FindAllStringSubmatch(block[1], -1) {
				words := strings.Fields(m[1])
				for i, word := range words {
					switch {
					case strings.HasPrefix(word, "."):
						dir := filepath.Join("../..", strings.TrimSuffix(word, "..."))
						if files, err := filepath.Glob(filepath.Join(dir, "*.go")); err != nil || len(files) == 0 && !strings.HasSuffix(word, "...") {
							t.Errorf("%s: go%s: %s has no package", name, m[1], dir)
						}
						seen++
					case word == "-run" && words[i+1] != "'^$'":
						tests := regexp.MustCompile(`func Test\w*` + words[i+1])
						if !slices.ContainsFunc(testFiles(t, words), tests.MatchString) {
							t.Errorf("%s: go%s: no test is called so", name, m[1])
						}
					}
				}
			}
		}
	}
	if seen < 5 {
		t.Errorf("only %d packages found", seen)
	}
}

// testFiles returns the tests of the packages among words.
func testFiles(t *testing.T, words []string) (texts []string) {
	t.Helper()
	for _, word := range words {
		names, err := filepath.Glob(filepath.Join("../..", word, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, string(b))
		}
	}
	return texts
}

// The guide's table is that of package policy.
func TestGuides_listEveryPolicy(t *testing.T) {
	page := guides(t)["../../docs/policies.md"]
	_, table, _ := strings.Cut(page, "|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var want []string
	for _, name := range policy.Names() {
		p, err := policy.New(name, policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		unit, _, _ := strings.Cut(p.Unit.String(), " ")
		want = append(want, "| "+name+" | "+unit+" | "+p.How()+" |")
	}
	if got := strings.Split(strings.TrimSpace(table), "\n"); !slices.Equal(got, want) {
		t.Errorf("docs/policies.md has the policies\n%s\nwanted are\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

var link = regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`)

func TestGuides_linksLeadSomewhere(t *testing.T) {
	for name, page := range guides(t) {
		for _, m := range link.FindAllStringSubmatch(page, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), m[1])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// README and ARCHITECTURE are short enough to be read. What is made of punctuation alone, such as
// a table's rules and a diagram's lines, is not a word.
func TestGuides_areShort(t *testing.T) {
	word := regexp.MustCompile(`\S*[\pL\pN]\S*`)
	pages := guides(t)
	for name, most := range map[string]int{"../../README.md": 1300, "../../ARCHITECTURE.md": 1800} {
		n := len(word.FindAllString(pages[name], -1))
		if n > most || n < most/4 {
			t.Errorf("%s has %d words; it should have at most %d", filepath.Base(name), n, most)
		}
	}
}

// figure is a number that has been measured: one with a decimal point.
var (
	figure = regexp.MustCompile(`\b\d+\.\d+\b`)
	number = regexp.MustCompile(`\d+(?:\.\d+)?`)
	code   = regexp.MustCompile("`[^`]*`|\\([^)]*\\)")
)

// Figures that README and the guides state are those of bench/RESULTS.md, rounded.
func TestGuides_figuresAreThoseOfTheResults(t *testing.T) {
	b, err := os.ReadFile("../../bench/RESULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	results := string(b)
	var measured []float64
	for _, s := range number.FindAllString(results, -1) {
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			measured = append(measured, f)
		}
	}
	stated := func(s string) bool {
		_, decimals, _ := strings.Cut(s, ".")
		want, _ := strconv.ParseFloat(s, 64)
		unit := math.Pow10(-len(decimals))
		for _, f := range measured {
			if math.Abs(f-want) <= unit/2*(1+1e-9) {
				return true
			}
		}
		return false
	}
	seen := 0
	for _, name := range []string{"../../README.md", "../../docs/operating.md", "../../docs/research.md"} {
		page := guides(t)[name]
		for _, line := range strings.Split(page, "\n") {
			if !strings.HasPrefix(line, "|") || strings.Contains(line, "multicast") {
				continue
			}
			for _, s := range figure.FindAllString(code.ReplaceAllString(line, ""), -1) {
				seen++
				if !stated(s) {
					t.Errorf("%s: %s is not in bench/RESULTS.md: %s", name, s, line)
				}
			}
		}
		for _, s := range regexp.MustCompile(`(?m)^[a-z-]+ {2,}\d.*$`).FindAllString(page, -1) { // the demo's table
			seen++
			if !strings.Contains(results, s) {
				t.Errorf("%s: this line is not in bench/RESULTS.md: %s", name, s)
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d figures found", seen)
	}
	for _, m := range regexp.MustCompile(`Of (\d+) experiments (\d+) agree[^,]*, (\d+) in sign and order, and (\d+) disagree`).FindAllStringSubmatch(guides(t)["../../docs/research.md"], -1) {
		if line := m[1] + " experiments: " + m[2] + " agree within their tolerances, " + m[3] + " in sign and order, " + m[4] + " disagree"; !strings.Contains(results, line) {
			t.Errorf("bench/RESULTS.md does not say %q", line)
		}
	}
}
