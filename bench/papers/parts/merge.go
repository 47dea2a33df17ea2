package parts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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
	planAt string // path
	dirs   []Dir
	parts  map[Key]*papers.Part
}

// Merge finds the plan of directories, of which one must have one. It refuses plans that are
// torn, bad or differ. Load reads the parts.
func Merge(dirs ...Dir) (*Merged, error) {
	m := &Merged{dirs: dirs, parts: make(map[Key]*papers.Part)}
	for _, d := range dirs {
		names, err := fs.Glob(d.Files, plans+"*.json")
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			b, err := Read(d.Files, name)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", d.Name, err)
			}
			if err := m.plan(d.path(name), name, b); err != nil {
				return nil, err
			}
		}
	}
	if m.planAt == "" {
		return nil, errors.New("there is no plan: weft sim run --shard writes one beside its parts")
	}
	return m, nil
}

func (d Dir) path(name string) string { return d.Name + "/" + name }

// plan takes a plan that is the same as the one that there is.
func (m *Merged) plan(path, name string, b []byte) error {
	p, err := decodePlan(name, b)
	switch {
	case err != nil:
		return fmt.Errorf("%s %w: remove it, and run a shard again, which writes it", path, err)
	case m.planAt == "":
		m.Plan, m.planAt = p, path
	case p.File() != m.File():
		return fmt.Errorf("two plans: %s has %s; %s has %s: merge the parts of one, and remove the other plan's file", m.planAt, m.Plan, path, p)
	}
	return nil
}

// Load reads the parts of units, and no other files: directories may have parts of other
// builds, forms and experiments as well. It refuses files that are torn, and two parts of
// one key that differ. It says which parts are missing, and what there is in their place.
func (m *Merged) Load(units []papers.Unit) error {
	const shown = 3
	var missing []string
	n := 0
	for _, u := range units {
		k := KeyOf(m.Build, u, m.Quick)
		if err := m.load(k); err != nil {
			return err
		}
		if m.parts[k] != nil {
			continue
		}
		if n++; n <= shown {
			missing = append(missing, k.String()+m.instead(k))
		}
	}
	if n == 0 {
		return nil
	}
	if n > shown {
		missing = append(missing, fmt.Sprintf("and %d more", n-shown))
	}
	return fmt.Errorf("%d of %d parts are missing: %s: run their shards again, which runs nothing else", n, len(units), strings.Join(missing, "; "))
}

// load reads what directories have of a key: nothing, or what is equal in all that have it.
func (m *Merged) load(k Key) error {
	name, at := k.File(), ""
	for _, d := range m.dirs {
		b, err := Read(d.Files, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", d.Name, err)
		}
		_, p, err := Decode(name, b)
		if err != nil {
			return fmt.Errorf("%s %w: remove it, and run its shard again", d.path(name), err)
		}
		if at == "" {
			m.parts[k], at = p, d.path(name)
			continue
		}
		same, err := equal(m.parts[k].Outcome, p.Outcome)
		if err != nil {
			return err
		}
		if !same {
			return fmt.Errorf("%s and %s are of one key and differ, which no two runs should: keep them, and report it", at, d.path(name))
		}
	}
	return nil
}

// instead says what there is in place of a part that is missing: one of another build, form
// or setting.
func (m *Merged) instead(k Key) string {
	for _, d := range m.dirs {
		names, err := fs.Glob(d.Files, fmt.Sprintf("%s-seed%d-*.json", k.Experiment, k.Seed))
		if err != nil {
			continue // of a name that is no pattern; there are none
		}
		for _, name := range names {
			b, err := Read(d.Files, name)
			if err != nil {
				continue // of a file that is not wanted
			}
			other, _, err := Decode(name, b)
			if err != nil || other.Mutant != k.Mutant || other.Parameter != k.Parameter || other.Value != k.Value {
				continue
			}
			var is string
			switch {
			case other.Build != k.Build:
				is = "is by " + other.Build.String()
			case other.Quick != k.Quick:
				is = "was run " + form(other.Quick)
			default:
				is = fmt.Sprintf("has the setting %s, and this weft's is %s", other.Setting, k.Setting)
			}
			return fmt.Sprintf(" (%s %s)", d.path(name), is)
		}
	}
	return ""
}

func equal(a, b *papers.Outcome) (bool, error) {
	x, err := json.Marshal(a)
	if err != nil {
		return false, err
	}
	y, err := json.Marshal(b)
	return bytes.Equal(x, y), err
}

// Get is the part of a unit that Load has read.
func (m *Merged) Get(u papers.Unit) (*papers.Part, error) {
	k := KeyOf(m.Build, u, m.Quick)
	if p := m.parts[k]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%s is missing", k)
}

// Put never comes: nothing is run.
func (m *Merged) Put(papers.Unit, *papers.Part) error { return nil }
