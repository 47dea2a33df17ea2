package service

import (
	"slices"
	"strings"
)

// maxRepairs bounds the repairs that a status tells of.
const maxRepairs = 16

// Repairs counts the changes of others that a daemon has undone. It is not safe for
// concurrent use.
type Repairs struct {
	Count uint64   `json:"count"`
	Last  []string `json:"last,omitempty"` // the latest 16 in words, oldest first
}

// Add adds repairs.
func (r *Repairs) Add(did ...string) {
	r.Count += uint64(len(did))
	r.Last = append(r.Last, did...)
	r.Last = r.Last[max(0, len(r.Last)-maxRepairs):]
}

// Copy returns a copy that later repairs do not change.
func (r *Repairs) Copy() Repairs { return Repairs{r.Count, slices.Clone(r.Last)} }

// OneLine turns the text of joined errors into one line.
func OneLine(text string) string { return strings.ReplaceAll(text, "\n", "; ") }
