package papers

import (
	"fmt"
	"strings"
)

// Verdict sums up an experiment.
type Verdict string

// The verdicts.
const (
	Agrees      Verdict = "agrees within its tolerance"
	AgreesOrder Verdict = "agrees in sign and order"
	Undecided   Verdict = "is not decided by so few seeds"
	Disagrees   Verdict = "disagrees"
	OnlyFitted  Verdict = "has fitted figures alone"
	OnlyBounds  Verdict = "holds by bounds alone"
)

// Kind is what a row is to a verdict.
type Kind string

// The kinds of rows.
const (
	KindValue Kind = "value" // a figure of the paper, with a tolerance to both sides
	KindBound Kind = "bound" // the paper states how much at most or at least
	KindOrder Kind = "order" // an order or a direction of the paper's
	KindClaim Kind = "claim" // another statement of the paper's
	KindOwn   Kind = "own"   // our own reading of the paper's words, or our own figure in place of its
	// KindFitted is a figure of the paper's by which a parameter was chosen: see Row.Fitted.
	KindFitted Kind = "fitted"
	KindInfo   Kind = "info" // nothing to compare with
)

// Judge is the verdict of rows.
//
// They agree if there is a value and every value is within its tolerance, no bound, order,
// claim or own row fails, all orders are decided, and there are EnoughSeeds. Only values
// make them agree: without one, or with one that is out, nothing else does.
//
// They agree in sign and order if there is an order and all orders hold beyond the spread
// of seeds: see Row.Decided. They disagree if an order fails with most seeds, or if there
// is no order and not all is as it should be. Else it is not decided: more seeds can.
//
// Where every row of the paper's is fitted nothing is left that could agree: they have
// fitted figures alone, or disagree. Where all is as it should be and there is neither a value
// nor an order, they hold by bounds alone, or by statements and readings of ours: that is no
// agreement, as a figure may be anywhere on the right side.
func Judge(rows []Row) Verdict {
	all, decided, values, orders, seeds := true, true, 0, 0, 1
	fitted, others, judged := 0, 0, 0
	for _, r := range rows {
		all, seeds = all && r.OK, max(seeds, r.Seeds)
		switch r.Kind {
		case KindValue:
			values++
		case KindOrder:
			orders++
			if 2*(r.Seeds-r.Held) > r.Seeds {
				return Disagrees
			}
			decided = decided && r.Decided()
		case KindFitted:
			fitted++
		}
		if r.papers() {
			others++
		}
		if r.Kind != KindInfo {
			judged++
		}
	}
	within := all && values > 0
	switch {
	case all && fitted > 0 && others == 0:
		return OnlyFitted
	case within && decided && seeds >= EnoughSeeds:
		return Agrees
	case all && judged > 0 && values == 0 && orders == 0:
		return OnlyBounds
	case !within && orders == 0:
		return Disagrees
	case decided && orders > 0:
		return AgreesOrder
	}
	return Undecided
}

// Decided reports whether a statement holds beyond the spread of seeds, by a sign test: the
// probability that a fair coin falls as often as the statement holds, with as many throws
// as there are seeds, is at most Chance. All schemes of a seed have the same flows, so
// each seed compares pairs. The test knows nothing of how much larger a figure is; Order
// takes care of that, for which figures within Tie are equal.
func (r Row) Decided() bool { return tossed(r.Held, r.Seeds) <= Chance }

// tossed is the probability that a coin falls so often or more of n times.
func tossed(held, n int) float64 {
	p, ways := 0.0, 1.0 // ways to choose i of n
	for i := range n + 1 {
		if i >= held {
			p += ways
		}
		ways = ways * float64(n-i) / float64(i+1)
	}
	for range n {
		p /= 2
	}
	return p
}

// EnoughSeeds are the fewest that can decide an order: all of them, if it holds with each.
// With fewer nothing agrees.
const EnoughSeeds = 5

// Score is how many of the paper's figures are within their tolerance.
type Score struct {
	Within int `json:"within"`
	Of     int `json:"of"` // values that the paper publishes and we compare
}

// ScoreOf counts rows that are values; nothing else scores.
func ScoreOf(rows []Row) (s Score) {
	for _, r := range rows {
		if r.Kind == KindValue {
			s.Of++
			if r.OK {
				s.Within++
			}
		}
	}
	return s
}

// Plus is the score of both.
func (s Score) Plus(t Score) Score { return Score{s.Within + t.Within, s.Of + t.Of} }

// ByTolerance are the scores of rows by their tolerance in percent.
func ByTolerance(rows []Row) map[float64]Score {
	by := make(map[float64]Score)
	for _, r := range rows {
		if s := ScoreOf([]Row{r}); s.Of > 0 {
			by[r.TolerancePercent] = by[r.TolerancePercent].Plus(s)
		}
	}
	return by
}

// RangeScore is the score of those rows whose paper gives a range, which any value in it meets.
func RangeScore(rows []Row) (s Score) {
	for _, r := range rows {
		if strings.HasPrefix(r.Note, rangeNote) {
			s = s.Plus(ScoreOf([]Row{r}))
		}
	}
	return s
}

func (s Score) String() string { return fmt.Sprintf("%d of %d published values", s.Within, s.Of) }
