package doctor

import (
	"cmp"
	"slices"
)

// Finding is what a check has found.
type Finding struct {
	// Node is where: a host's or a switch's name. It is empty where only one machine was looked at.
	Node  string `json:"node,omitempty"`
	Check string `json:"check"` // a name of Names
	OK    bool   `json:"ok"`
	Cause string `json:"cause,omitempty"` // what is wrong; of a check that is well, what was seen
	Fix   string `json:"fix,omitempty"`   // what to do about it
	// Skipped says why the check was not made. Then OK is true.
	Skipped string `json:"skipped,omitempty"`
	// Weight says how near to the root of troubles what is wrong is: stops, explains, seen, follows
	// or slows.
	Weight weight `json:"weight,omitempty"`

	named bool
}

// Named reports whether it is that something is not there which the configuration names.
func (f Finding) Named() bool { return f.named && !f.OK }

// Unreachable is the finding of a machine that could not be looked at.
func Unreachable(cause, fix string) Finding {
	f := wrong(stops, cause, fix)
	f.Check = "reach"
	return f
}

// weight says how near to the root of troubles a finding is.
type weight string

const (
	stops    weight = "stops"    // weft does not work here at all
	explains weight = "explains" // it explains what the daemon sees
	seen     weight = "seen"     // the daemon sees it, and knows where
	follows  weight = "follows"  // the daemon sees what follows from something
	slows    weight = "slows"    // it costs speed, or may once
)

// rank orders weights. A word that is none of them, from a machine with another version, is in the
// middle.
func (w weight) rank() int {
	order := []weight{stops, explains, seen, follows, slows}
	if i := slices.Index(order, w); i >= 0 {
		return i
	}
	return slices.Index(order, seen)
}

// Sort puts findings in the order in which they are worth acting on: wrong ones first, those
// nearest to the root before others. Findings of one weight keep their order.
func Sort(all []Finding) {
	slices.SortStableFunc(all, func(a, b Finding) int {
		if a.OK != b.OK {
			return cmp.Compare(btoi(a.OK), btoi(b.OK))
		}
		if a.OK {
			return 0
		}
		return cmp.Compare(a.Weight.rank(), b.Weight.rank())
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Wrong counts the findings of what is wrong.
func Wrong(all []Finding) (n int) {
	for _, f := range all {
		if !f.OK {
			n++
		}
	}
	return n
}
