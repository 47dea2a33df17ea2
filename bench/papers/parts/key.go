// Package parts is what the experiments of bench/papers gave, seed by seed, as files that
// machines can exchange. A part's Key says what it is of: the build, the experiment with its
// setting, the mutant or the value of a decision, the form and the seed. Its file has the key's hash in its name and
// the hash of what is in it. So the same work is found again, and nothing else is taken
// for it. A Plan says which parts belong together, and Merge puts those of several
// directories together, or says why they do not fit.
//
// It is pure: directories are fs.FS, and who writes files is elsewhere.
package parts

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"weft/bench/papers"
)

// format is of the files. Another one is another key.
const format = 1

// Build is the program that ran. Equal builds give equal figures.
type Build struct {
	// Commit is that of a checkout without changes.
	Commit string `json:"commit,omitempty"`
	// Executable is the SHA-256 of the program. It stands for the commit where the checkout
	// had changes, or nobody knows it.
	Executable string `json:"executable,omitempty"`
	Go         string `json:"go"`
	Platform   string `json:"platform"` // processors round differently
	// Settings is a hash of what else the program was built with: compilers that optimize
	// less or more may round differently, too.
	Settings string `json:"settings,omitempty"`
}

func (b Build) String() string {
	of := "commit " + b.Commit
	if b.Commit == "" {
		of = fmt.Sprintf("executable %.12s, of a checkout with changes or of no known commit", b.Executable)
	}
	of += ", " + b.Go + ", " + b.Platform
	if b.Settings != "" {
		of += ", with settings " + b.Settings
	}
	return of
}

// Key says what a part is of.
type Key struct {
	Format     int    `json:"format"`
	Build      Build  `json:"build"`
	Experiment string `json:"experiment"`
	Setting    string `json:"setting"` // hash of the experiment's parameters
	Mutant     string `json:"mutant,omitempty"`
	Parameter  string `json:"parameter,omitempty"` // of a decision
	Value      string `json:"value,omitempty"`     // of Parameter
	Quick      bool   `json:"quick"`
	Seed       uint64 `json:"seed"`
}

// KeyOf is a unit's, in the small form or in full.
func KeyOf(b Build, u papers.Unit, quick bool) Key {
	stated, inferred := papers.Apart(u.Setting)
	k := Key{Format: format, Build: b, Experiment: u.Name, Setting: hash([2][]papers.Parameter{stated, inferred}), Quick: quick, Seed: u.Seed}
	switch v := u.Variant; {
	case v == nil:
	case v.Decision != nil:
		k.Parameter, k.Value = v.Decision.Parameter, v.Name
	default:
		k.Mutant = v.Name
	}
	return k
}

// File is the name of the part's file: what people look for, and the key's hash.
func (k Key) File() string { return fmt.Sprintf("%s-seed%d-%s.json", k.Experiment, k.Seed, hash(k)) }

// String is the key in words.
func (k Key) String() string {
	s := fmt.Sprintf("%s, seed %d, %s", k.Experiment, k.Seed, form(k.Quick))
	if k.Mutant != "" {
		s += fmt.Sprintf(", mutant %q", k.Mutant)
	}
	if k.Parameter != "" {
		s += fmt.Sprintf(", %s %q", k.Parameter, k.Value)
	}
	return s
}

func form(quick bool) string {
	if quick {
		return "with --quick"
	}
	return "in full"
}

// hash is of a value as JSON: 16 digits, of which two equal ones are next to impossible.
func hash(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("parts: " + err.Error()) // of keys and plans, which have nothing but text and numbers
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}
