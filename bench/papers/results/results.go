// Package results keeps what the papers' experiments gave, in a file of JSON for each,
// and writes the tables and counts of documents from these files. So what documents say
// is what was run: by which commit, with which seeds, on which machine. A test of cmd/weft
// fails where they differ.
//
//	weft sim run NAME --seeds 5 --store bench/papers/results    writes NAME.json
//	weft sim mutants NAME --store bench/papers/results          writes into mutants.json
//	weft sim report --write .                                   writes the documents
package results

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"weft/bench/papers"
)

//go:embed *.json
var files embed.FS

// Stored are the results that this build knows.
func Stored() (*Results, error) { return Read(files) }

// Run is what an experiment gave.
type Run struct {
	Experiment string         `json:"experiment"`
	Commit     string         `json:"commit"`
	Modified   bool           `json:"modified,omitempty"` // by changes that are not in Commit
	Machine    string         `json:"machine"`
	Seed       uint64         `json:"seed"`
	Seeds      int            `json:"seeds"`
	WallS      float64        `json:"wall_s"`
	CPUS       float64        `json:"cpu_s"`
	Verdict    papers.Verdict `json:"verdict"`
	Score      papers.Score   `json:"score"`
	Because    string         `json:"because,omitempty"`
	Rows       []papers.Row   `json:"rows"` // those that the verdict depends on
}

// Of is what is kept of a report. That of a quick run is an error.
func Of(r *papers.Report, commit, machine string, modified bool) (*Run, error) {
	if r.Quick {
		return nil, fmt.Errorf("%s: a quick run says nothing that is worth keeping: run it without --quick", r.Experiment)
	}
	if commit == "" {
		return nil, errors.New("nobody knows the commit: the directory of results must be in a git repository")
	}
	run := &Run{
		Experiment: r.Experiment, Commit: commit, Modified: modified, Machine: machine,
		Seed: r.Seed, Seeds: max(r.Seeds, 1), WallS: short(r.WallS), CPUS: short(r.CPUS),
		Verdict: r.Verdict, Score: r.Score, Because: r.Because,
	}
	for _, row := range r.Rows {
		if row.Kind == papers.KindInfo {
			continue
		}
		row.Ours = short(row.Ours)
		for _, end := range []**float64{&row.Paper, &row.Low, &row.High} {
			if *end != nil {
				v := short(**end)
				*end = &v
			}
		}
		run.Rows = append(run.Rows, row)
	}
	return run, nil
}

// short keeps six digits.
func short(x float64) float64 {
	v, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 6, 64), 64)
	if err != nil || math.IsInf(v, 0) {
		return x
	}
	return v
}

// Name is the file's.
func (r *Run) Name() string { return r.Experiment + ".json" }

// JSON has a line for each row, so that a difference is one line.
func (r *Run) JSON() ([]byte, error) {
	head := *r
	head.Rows = nil
	b, err := json.MarshalIndent(head, "", "  ")
	if err != nil {
		return nil, err
	}
	list, err := lines(r.Rows)
	if err != nil {
		return nil, err
	}
	b, ok := bytes.CutSuffix(b, []byte("null\n}"))
	if !ok {
		return nil, fmt.Errorf("%s: rows are not last", r.Experiment)
	}
	return slices.Concat(b, list, []byte("\n}\n")), nil
}

// lines is a list with a line for each element.
func lines[T any](list []T) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("[")
	for i, v := range list {
		one, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString("\n  ")
		b.Write(one)
	}
	b.WriteString("\n]")
	return b.Bytes(), nil
}

// MutantsFile is the file of mutants.
const MutantsFile = "mutants.json"

// Results are all that is stored.
type Results struct {
	Runs    map[string]*Run // by experiment
	Mutants []papers.Trial
}

// Read reads a directory of results. One that has none is empty.
func Read(dir fs.FS) (*Results, error) {
	names, err := fs.Glob(dir, "*.json")
	if err != nil {
		return nil, err
	}
	all := &Results{Runs: make(map[string]*Run)}
	for _, name := range names {
		b, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, err
		}
		if name == MutantsFile {
			err = json.Unmarshal(b, &all.Mutants)
		} else {
			r := new(Run)
			err = json.Unmarshal(b, r)
			all.Runs[strings.TrimSuffix(path.Base(name), ".json")] = r
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return all, nil
}

// Merge replaces trials of the same experiments in the same form, and keeps the rest.
func Merge(old, news []papers.Trial) []papers.Trial {
	all := slices.Clone(news)
	for _, t := range old {
		if !slices.ContainsFunc(news, func(n papers.Trial) bool { return n.Experiment == t.Experiment && n.Quick == t.Quick }) {
			all = append(all, t)
		}
	}
	slices.SortStableFunc(all, func(a, b papers.Trial) int { return strings.Compare(a.Experiment, b.Experiment) })
	return all
}

// MutantsJSON has a line for each trial.
func MutantsJSON(all []papers.Trial) ([]byte, error) {
	b, err := lines(all)
	return append(b, '\n'), err
}

// Tried are an experiment's trials: the full ones if there are any, else the quick ones.
func (r *Results) Tried(experiment string) (trials []papers.Trial) {
	for _, quick := range []bool{false, true} {
		for _, t := range r.Mutants {
			if t.Experiment == experiment && t.Quick == quick {
				trials = append(trials, t)
			}
		}
		if len(trials) > 0 {
			break
		}
	}
	return trials
}

// Passing are the mutants of an experiment that are known to pass.
func (r *Results) Passing(experiment string) (names []string) {
	for _, t := range r.Tried(experiment) {
		if t.Passes {
			names = append(names, t.Mutant)
		}
	}
	return names
}
