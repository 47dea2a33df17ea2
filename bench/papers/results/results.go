// Package results keeps what the papers' experiments gave, in a file of JSON for each,
// and writes the tables and counts of documents from these files. So what documents say
// is what was run: by which commit, with which seeds, on which machine. A test of cmd/weft
// fails where they differ.
//
//	weft sim run NAME --seeds 5 --store bench/papers/results    writes NAME.json
//	weft sim mutants NAME --store bench/papers/results          writes into mutants.json
//	weft sim decide NAME --store bench/papers/results           writes into decisions.json
//	weft sim report --write .                                   writes the documents
package results

import (
	"bytes"
	"cmp"
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

// Head says where a result is from.
type Head struct {
	Commit   string `json:"commit"`
	Modified bool   `json:"modified,omitempty"` // by changes that are not in Commit
	Machine  string `json:"machine"`
	Date     string `json:"date,omitempty"` // when it was kept, as 2026-11-28; "": not known
}

// check finds what makes a result unfit to be kept: that it has fewer than the fewest seeds.
func (h Head) check(experiment string, seeds, fewest int) error {
	switch {
	case h.Commit == "":
		return errors.New("nobody knows the commit: the directory of results must be in a git repository")
	case seeds < fewest:
		return fmt.Errorf("%s: --seeds=%d decides nothing that is worth keeping: must be %d or more", experiment, seeds, fewest)
	}
	return nil
}

// by is h with the machines that gave the parts, if these say so.
func (h Head) by(machines []string) Head {
	if len(machines) > 0 {
		h.Machine = strings.Join(machines, "; ")
	}
	return h
}

// Run is what an experiment gave.
type Run struct {
	Experiment string `json:"experiment"`
	Head
	Seed  uint64 `json:"seed"`
	Seeds int    `json:"seeds"`
	// Identity is papers.Experiment.Identity of the run; "": not known.
	Identity string         `json:"identity,omitempty"`
	WallS    float64        `json:"wall_s"`
	CPUS     float64        `json:"cpu_s"`
	Verdict  papers.Verdict `json:"verdict"`
	Score    papers.Score   `json:"score"`
	Because  string         `json:"because,omitempty"`
	Rows     []papers.Row   `json:"rows"` // those that the verdict depends on
}

// Of is what is kept of a report. Machines of its parts take the place of the head's. That
// of a quick run, or of too few seeds, is an error.
func Of(r *papers.Report, h Head) (*Run, error) {
	if r.Quick {
		return nil, fmt.Errorf("%s: a quick run says nothing that is worth keeping: run it without --quick", r.Experiment)
	}
	if err := h.check(r.Experiment, max(r.Seeds, 1), papers.EnoughSeeds); err != nil {
		return nil, err
	}
	run := &Run{
		Experiment: r.Experiment, Head: h.by(r.Machines),
		Seed: r.Seed, Seeds: max(r.Seeds, 1), Identity: r.Identity, WallS: short(r.WallS), CPUS: short(r.CPUS),
		Verdict: r.Verdict, Score: r.Score, Because: r.Because,
	}
	for _, row := range r.Rows {
		if row.Kind == papers.KindInfo {
			continue
		}
		row.Ours = short(row.Ours)
		row.Paper, row.Low, row.High = shortened(row.Paper), shortened(row.Low), shortened(row.High)
		run.Rows = append(run.Rows, row)
	}
	return run, nil
}

// Report is what trials of mutants need of the report that the run is of: verdict, identity and
// rows. It is nil where the run cannot stand for one with these options: if the setting or the
// seeds are others, if its build had changes that are in no commit, and for a quick run.
func (r *Run) Report(e papers.Experiment, o papers.Options) *papers.Report {
	if o.Quick || r.Modified || r.Seed != o.Seed || r.Seeds != o.Seeds || r.Identity == "" || r.Identity != e.Identity(r.Rows) {
		return nil
	}
	return &papers.Report{
		Experiment: r.Experiment, Seed: r.Seed, Seeds: r.Seeds, Identity: r.Identity,
		Verdict: r.Verdict, Score: r.Score, Because: r.Because, Rows: r.Rows,
	}
}

// identified is the run's identity, or that which it has if the setting is still the same.
func (r *Run) identified(e papers.Experiment) string { return cmp.Or(r.Identity, e.Identity(r.Rows)) }

// short keeps six digits.
func short(x float64) float64 {
	v, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 6, 64), 64)
	if err != nil || math.IsInf(v, 0) {
		return x
	}
	return v
}

func shortened(x *float64) *float64 {
	if x == nil {
		return nil
	}
	v := short(*x)
	return &v
}

// String says in a line when, by what and with which verdict it was kept.
func (r *Run) String() string {
	date, commit := cmp.Or(r.Date, "at an unknown date"), r.Commit[:min(len(r.Commit), 12)]
	if r.Modified {
		commit += " with changes"
	}
	return fmt.Sprintf("%s, commit %s, %d seeds from %d on: %s", date, commit, r.Seeds, r.Seed, r.Verdict)
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

// Results are all that is stored.
type Results struct {
	Runs      map[string]*Run // by experiment
	Mutants   []Trial
	Decisions []Finding
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
		switch name {
		case MutantsFile:
			err = json.Unmarshal(b, &all.Mutants)
		case DecisionsFile:
			err = json.Unmarshal(b, &all.Decisions)
		default:
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
