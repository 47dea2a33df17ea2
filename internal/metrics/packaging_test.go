package metrics

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"go.yaml.in/yaml/v3"
)

const packaged = "../../packaging/prometheus"

// query is an expression of PromQL, and where it stands.
type query struct{ where, expr string }

func dashboardQueries(t *testing.T) (all []query) {
	t.Helper()
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	b, err := os.ReadFile(filepath.Join(packaged, "dashboard.json"))
	if err == nil {
		err = json.Unmarshal(b, &d)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all = append(all, query{p.Title, target.Expr})
		}
	}
	return all
}

func alertQueries(t *testing.T) (all []query) {
	t.Helper()
	var f struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	b, err := os.ReadFile(filepath.Join(packaged, "alerts.yml"))
	if err == nil {
		err = yaml.Unmarshal(b, &f)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range f.Groups {
		for _, r := range g.Rules {
			all = append(all, query{r.Alert, r.Expr})
			if r.Annotations["summary"] == "" || r.Annotations["action"] == "" {
				t.Errorf("%s does not say what is wrong and what to do", r.Alert)
			}
		}
	}
	return all
}

// Every metric that a dashboard or an alert names is exported. A name that was changed would
// leave an empty panel, or an alert that never comes.
func TestPackaging_namesAreExported(t *testing.T) {
	names := Names()
	word := regexp.MustCompile(`\bweft_[a-z0-9_]+`)
	n := 0
	for _, q := range append(dashboardQueries(t), alertQueries(t)...) {
		for _, name := range word.FindAllString(q.expr, -1) {
			n++
			if base, ok := strings.CutSuffix(name, "_bucket"); ok {
				name = base
			}
			if !slices.Contains(names, name) {
				t.Errorf("%s: %s is not exported", q.where, name)
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d names found", n)
	}
}

// promtool parses the dashboard's queries as recording rules.
func TestPackaging_promtool(t *testing.T) {
	promtool(t, "", "check", "rules", filepath.Join(packaged, "alerts.yml"))
	type rule struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	var rules []rule
	for i, q := range dashboardQueries(t) {
		rules = append(rules, rule{fmt.Sprintf("panel:%d", i), strings.ReplaceAll(q.expr, "$__rate_interval", "5m")})
	}
	b, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "", "check", "rules", file)
}

// What to do about a place that loses packets goes by its kind: a switch has no two ends.
func TestPackaging_actionByKind(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(packaged, "alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := bytes.Cut(b, []byte("alert: WeftPlaceLossy"))
	_, text, _ = bytes.Cut(text, []byte("action: >-\n"))
	text, _, _ = bytes.Cut(text, []byte("- alert:"))
	action, err := template.New("").Parse("{{ $labels := . }}" + string(text))
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]string{"link": "both ends", "switch": "that switch", "host": "that host"} {
		var says strings.Builder
		if err := action.Execute(&says, map[string]string{"kind": kind}); err != nil {
			t.Fatal(err)
		}
		if got := says.String(); !strings.Contains(got, want) || kind != "link" && strings.Contains(got, "both ends") {
			t.Errorf("of a %s: %s", kind, got)
		}
	}
}
