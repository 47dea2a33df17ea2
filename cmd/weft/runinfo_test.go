package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// Results have the run in JSON and CSV, whatever they are.
func TestPutResults(t *testing.T) {
	type inner struct {
		Min float64 `json:"min"`
	}
	type result struct {
		Policy  string             `json:"policy"`
		Mbit    inner              `json:"mbit"`
		Missing *float64           `json:"missing"`
		Samples []float64          `json:"samples"`
		Names   []string           `json:"names"`
		Parts   []inner            `json:"parts"`
		By      map[string]float64 `json:"by,omitempty"`
	}
	run := runInfo{Commit: "c0ffee", Seeds: []uint64{3, 4}}
	results := []result{
		{Policy: `a "b", c`, Mbit: inner{1.5}, Samples: []float64{1, 2}, Names: []string{"x", "y"}, Parts: []inner{{1}}},
		{Policy: "d", By: map[string]float64{"k": 7}},
	}
	file := filepath.Join(t.TempDir(), "r.csv")
	for _, v := range []any{results, results[:0], results[1], []result(nil)} {
		o := resultOutput{json: true, csv: file}
		if err := o.openResults(); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := o.putResults(&b, run, v, nil); err != nil {
			t.Fatal(err)
		}
		var list []map[string]any
		text := b.Bytes()
		if text[0] == '{' {
			text = append(append([]byte{'['}, text...), ']')
		}
		if err := json.Unmarshal(text, &list); err != nil || list == nil {
			t.Fatalf("%v: %s", err, text)
		}
		for _, o := range list {
			if r, _ := o["run"].(map[string]any); r["commit"] != "c0ffee" || len(o) < 7 {
				t.Errorf("%s", text)
			}
		}
	}
	o := resultOutput{csv: file}
	if err := o.openResults(); err != nil {
		t.Fatal(err)
	}
	if err := o.putResults(nil, run, results, func(io.Writer) error { return nil }); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil || len(lines) != 3 {
		t.Fatalf("%v: %s", err, text)
	}
	get := func(line int) map[string]string {
		m := make(map[string]string)
		for i, column := range lines[0] {
			m[column] = lines[line][i]
		}
		return m
	}
	for line, want := range map[int]map[string]string{
		1: {"policy": `a "b", c`, "mbit.min": "1.5", "missing": "", "samples": "1 2", "names": "x y", "parts": `[{"min":1}]`, "run.commit": "c0ffee", "run.seeds": "3 4", "by.k": ""},
		2: {"policy": "d", "mbit.min": "0", "samples": "", "by.k": "7", "run.seeds": "3 4"},
	} {
		got := get(line)
		for column, cell := range want {
			if got[column] != cell {
				t.Errorf("line %d, %s: %q, want %q", line, column, got[column], cell)
			}
		}
	}
	wantError(t, "bench units --quick --csv /nonexistent/r.csv", "--csv=/nonexistent/r.csv", "no such directory")
}

// A run says when, from what, where and with which seeds it was, as text and as facts.
func TestRunInfo(t *testing.T) {
	r := newRunInfo(7, 3)
	if !reflect.DeepEqual(r.Seeds, []uint64{7, 8, 9}) || r.Kernel == "" || r.Date == "" || r.Commit == "" {
		t.Errorf("%+v", r)
	}
	text := r.String()
	facts := ""
	for _, f := range r.facts() {
		facts += f.Name + " " + f.Value + "\n"
	}
	for _, want := range []string{r.day(), "commit", "7 to 9", r.Kernel, r.Processor} {
		if !strings.Contains(text, want) || !strings.Contains(facts, want) {
			t.Errorf("no %q in\n%s\nor\n%s", want, text, facts)
		}
	}
	if r := newRunInfo(0, 0); strings.Contains(r.String(), "seed") {
		t.Errorf("nothing is drawn, but: %s", r)
	}
}
