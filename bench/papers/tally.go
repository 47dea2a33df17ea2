package papers

import "math"

// Progress is how far a batch has come.
type Progress struct {
	Units, Done int // units in all, and those that have ended or were kept before
	Saved       int // units that the Keeper has
	// PerMille and Kept are parts of the whole work: what is done, and what was kept before.
	PerMille, Kept int
}

// tally adds up how far units have come, by their weights.
type tally struct {
	weights, parts []float64 // of each unit; how much of it is done
	sum            float64
	kept           float64
	units, done    int
	saved          int
}

// newTally is of units with weights, of which those that weigh nothing do not count and
// some were kept before.
func newTally(weights []float64, kept []int) *tally {
	t := &tally{weights: weights, parts: make([]float64, len(weights))}
	for _, w := range weights {
		t.sum += w
		if w > 0 {
			t.units++
		}
	}
	for _, i := range kept {
		t.end(i, true)
		t.kept += weights[i]
	}
	return t
}

// at says how much of a unit is done. One with several sweeps begins anew with each, and
// does not go back.
func (t *tally) at(unit, done, total int) {
	if total > 0 {
		t.parts[unit] = max(t.parts[unit], float64(done)/float64(total))
	}
}

// end says that a unit has ended, and whether it is kept.
func (t *tally) end(unit int, saved bool) {
	t.parts[unit] = 1
	t.done++
	if saved {
		t.saved++
	}
}

func (t *tally) progress() Progress {
	done := 0.0
	for i, part := range t.parts {
		done += part * t.weights[i]
	}
	return Progress{Units: t.units, Done: t.done, Saved: t.saved, PerMille: perMille(done, t.sum), Kept: perMille(t.kept, t.sum)}
}

func perMille(part, of float64) int {
	if of <= 0 {
		return 1000
	}
	return int(math.Round(1000 * part / of))
}
