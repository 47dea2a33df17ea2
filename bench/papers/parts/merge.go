package parts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"weft/bench/papers"
)

// Dir is a directory of parts; Name is for errors.
type Dir struct {
	Name  string
	Files fs.FS
}

// Merged are the parts of a plan.
type Merged struct {
	Plan
	parts map[Key]found
}

// found is a part and where it was.
type found struct {
	*papers.Part
	path string
}

// Merge puts together what directories have of one plan, which one of them must have. It
// refuses files that are torn, plans that differ, parts of other builds or of the other
// form, and two parts of one key that differ; the error names both sides.
func Merge(dirs ...Dir) (*Merged, error) {
	m := &Merged{parts: make(map[Key]found)}
	var planAt string
	for _, d := range dirs {
		names, err := fs.Glob(d.Files, "*.json")
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			path := d.Name + "/" + name
			b, err := Read(d.Files, name)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			if strings.HasPrefix(name, plans) {
				if planAt, err = m.plan(planAt, path, name, b); err != nil {
					return nil, err
				}
			} else if err := m.add(path, name, b); err != nil {
				return nil, err
			}
		}
	}
	if planAt == "" {
		return nil, errors.New("there is no plan: weft sim run --shard writes one beside its parts")
	}
	for _, k := range slices.SortedFunc(maps.Keys(m.parts), byFile) {
		at := m.parts[k].path
		switch {
		case k.Build != m.Build:
			return nil, fmt.Errorf("%s is by %s, and %s wants %s: merge what one build gave", at, k.Build, planAt, m.Build)
		case k.Quick != m.Quick:
			return nil, fmt.Errorf("%s was run %s, and %s wants it %s: merge one form", at, form(k.Quick), planAt, form(m.Quick))
		}
	}
	return m, nil
}

// plan takes a plan that is the same as the one that there is.
func (m *Merged) plan(planAt, path, name string, b []byte) (string, error) {
	p, err := decodePlan(name, b)
	switch {
	case err != nil:
		return "", fmt.Errorf("%s %w", path, err)
	case planAt != "" && p.File() != m.File():
		return "", fmt.Errorf("two plans: %s has %s; %s has %s: merge the parts of one", planAt, m.Plan, path, p)
	case planAt != "":
		return planAt, nil
	}
	m.Plan = p
	return path, nil
}

// add takes a part, of which there may be another that is equal.
func (m *Merged) add(path, name string, b []byte) error {
	k, p, err := Decode(name, b)
	if err != nil {
		return fmt.Errorf("%s %w: remove it, and run its shard again", path, err)
	}
	if other, ok := m.parts[k]; ok {
		same, err := equal(other.Outcome, p.Outcome)
		if err != nil {
			return err
		}
		if !same {
			return fmt.Errorf("%s and %s are of one key and differ, which no two runs should: keep them, and report it", other.path, path)
		}
		return nil
	}
	m.parts[k] = found{p, path}
	return nil
}

// byFile is an order of keys, for errors to be the same each time.
func byFile(a, b Key) int { return strings.Compare(a.File(), b.File()) }

func equal(a, b *papers.Outcome) (bool, error) {
	x, err := json.Marshal(a)
	if err != nil {
		return false, err
	}
	y, err := json.Marshal(b)
	return bytes.Equal(x, y), err
}

// Get is the part of a unit, or an error that says what there is in its place.
func (m *Merged) Get(u papers.Unit) (*papers.Part, error) {
	k := KeyOf(m.Build, u, m.Quick)
	if f, ok := m.parts[k]; ok {
		return f.Part, nil
	}
	for _, other := range slices.SortedFunc(maps.Keys(m.parts), byFile) {
		if other.Experiment == k.Experiment && other.Seed == k.Seed && other.Mutant == k.Mutant {
			return nil, fmt.Errorf("%s has the setting %s of %s, this weft's is %s: merge with the weft that ran", m.parts[other].path, other.Setting, k.Experiment, k.Setting)
		}
	}
	return nil, missing{k}
}

// Put never comes: nothing is run.
func (m *Merged) Put(papers.Unit, *papers.Part) error { return nil }

// Complete says which parts of units are missing, if any.
func (m *Merged) Complete(units []papers.Unit) error {
	const shown = 3
	var names []string
	n := 0
	for _, u := range units {
		_, err := m.Get(u)
		var none missing
		switch {
		case err == nil:
		case errors.As(err, &none):
			if n++; n <= shown {
				names = append(names, none.Key.String())
			}
		default:
			return err
		}
	}
	if n == 0 {
		return nil
	}
	if n > shown {
		names = append(names, fmt.Sprintf("and %d more", n-shown))
	}
	return fmt.Errorf("%d of %d parts are missing: %s: run their shards again, which runs nothing else", n, len(units), strings.Join(names, "; "))
}

// missing is the error for a part that no directory has.
type missing struct{ Key }

func (e missing) Error() string { return e.Key.String() + " is missing" }
