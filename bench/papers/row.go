package papers

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// The metrics of rows that are statements: Paper is 1, Ours 1 if it holds, else 0.
const (
	metricOrder = string(KindOrder)
	metricClaim = string(KindClaim)
)

// noClaim is the Note of a row for which the paper has no figure.
const noClaim = "the paper states no figure"

// Within is OK if ours is within a tolerance of the paper's.
func Within(label, metric string, paper, ours, tolerancePercent float64) Row {
	r := Row{Label: label, Metric: metric, Kind: KindValue, Paper: &paper, TolerancePercent: tolerancePercent}
	return r.judged(ours, rule{Is: isWithin, A: paper, Percent: tolerancePercent})
}

// judged is the row with a figure of ours, OK by a rule.
func (r Row) judged(ours float64, by rule) Row {
	r.Ours, r.OK, r.rule = ours, by.holds(ours), &by
	return r
}

// Ratio is Within for a quotient of ours.
func Ratio(label, metric string, paper, ours, by, tolerancePercent float64) Row {
	return Within(label, metric, paper, ours/by, tolerancePercent)
}

// AtMost is OK if ours does not exceed the paper's bound by more than the tolerance.
func AtMost(label, metric string, bound, ours, tolerancePercent float64) Row {
	r := Row{
		Label: label, Metric: metric, Kind: KindBound, Paper: &bound, TolerancePercent: tolerancePercent,
		Note: "the paper's is a bound: OK is at most that",
	}
	return r.judged(ours, rule{Is: isAtMost, A: bound, Percent: tolerancePercent})
}

// AtLeast is OK if ours is not below the paper's bound by more than the tolerance.
func AtLeast(label, metric string, bound, ours, tolerancePercent float64) Row {
	r := Row{
		Label: label, Metric: metric, Kind: KindBound, Paper: &bound, TolerancePercent: tolerancePercent,
		Note: "the paper's is a bound: OK is at least that",
	}
	return r.judged(ours, rule{Is: isAtLeast, A: bound, Percent: tolerancePercent})
}

// Between is OK if ours is within a range that the paper states, with the tolerance at
// both ends. Paper is the middle.
func Between(label, metric string, low, high, ours, tolerancePercent float64) Row {
	low, high = min(low, high), max(low, high)
	middle := (low + high) / 2
	r := Row{
		Label: label, Metric: metric, Kind: KindValue, Paper: &middle, TolerancePercent: tolerancePercent,
		Note: fmt.Sprintf(rangeNote+"%s to %s; OK is within", number(low), number(high)),
	}
	return r.judged(ours, rule{Is: isBetween, A: low, B: high, Percent: tolerancePercent})
}

// rangeNote begins the note of a row whose paper gives a range.
const rangeNote = "the paper: from "

// Order is OK if every value is above the next by more than a Tie. Its label names them:
// "goodput: DRB > RB > RRB".
func Order(label string, descending ...float64) Row {
	ok := true
	for i := 1; i < len(descending); i++ {
		ok = ok && Above(descending[i-1], descending[i])
	}
	return statement(label, KindOrder, ok)
}

// Above reports whether a is above b by more than a Tie.
func Above(a, b float64) bool { return a-b > Tie/100.*max(math.Abs(a), math.Abs(b)) }

// OrderAs is OK if ours are in the order of the paper's: of every two that are no tie in
// the paper, the one that is above is above in ours. What ties in the paper may come in
// any order. Where all of the paper's are tied there is no order to check, and the row is
// a Claim that ours are tied, too.
func OrderAs(what string, names []string, paper, ours []float64) Row {
	ok, tied, pairs := true, true, 0
	for i := range paper {
		for j := range paper {
			if Above(paper[i], paper[j]) {
				pairs++
				ok = ok && Above(ours[i], ours[j])
			}
			tied = tied && !Above(ours[i], ours[j])
		}
	}
	label := what + ": " + descending(names, paper)
	if pairs == 0 {
		return statement(label, KindClaim, tied)
	}
	return statement(label, KindOrder, ok)
}

// descending writes names in the order of figures, those that are tied with the one
// before with an equals sign.
func descending(names []string, figures []float64) string {
	order := make([]int, len(names))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(figures[b], figures[a]) })
	s := names[order[0]]
	for n, i := range order[1:] {
		sign := " = "
		if Above(figures[order[n]], figures[i]) {
			sign = " > "
		}
		s += sign + names[i]
	}
	return s
}

// Sign is a statement of the paper's about an order or a direction that Order cannot
// express. Like Order's rows it counts for "agrees in sign and order".
func Sign(label string, holds bool) Row { return statement(label, KindOrder, holds) }

// Claim is another statement of the paper that holds or not.
func Claim(label string, holds bool) Row { return statement(label, KindClaim, holds) }

func statement(label string, kind Kind, holds bool) Row {
	paper := 1.0
	r := Row{Label: label, Metric: string(kind), Kind: kind, Paper: &paper, OK: holds, Seeds: 1}
	if holds {
		r.Ours, r.Held = 1, 1
	}
	return r
}

// Own makes a row one of our own: the number, or the statement, is not the paper's. It can
// keep an experiment from agreeing, and neither makes it agree nor scores.
func (r Row) Own() Row {
	r.Kind = KindOwn
	return r
}

// Fitted marks a row by whose figure a parameter of the setting was chosen, or which says in
// other words what the setting states. That it comes out is no evidence: like a row of our
// own it can keep an experiment from agreeing, and neither makes it agree nor scores.
func (r Row) Fitted() Row {
	r.Kind = KindFitted
	return r
}

// papers reports whether a row is a figure or a statement of the paper's that nothing was
// fitted to.
func (r Row) papers() bool {
	return r.Kind != KindOwn && r.Kind != KindFitted && r.Kind != KindInfo
}

// Info is a figure of ours for which the paper has none. It is always OK, and no verdict
// depends on it.
func Info(label, metric string, ours float64) Row {
	return Row{Label: label, Metric: metric, Kind: KindInfo, Ours: ours, OK: true, Note: noClaim}
}

// Change is the difference of a value from another, in percent.
func Change(from, to float64) float64 { return (to/from - 1) * 100 }
