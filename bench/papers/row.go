package papers

import (
	"fmt"
	"math"
)

// The metrics of rows that are statements: Paper is 1, Ours 1 if it holds, else 0.
const (
	metricOrder = "order"
	metricClaim = "claim"
)

// noClaim is the Note of a row for which the paper has no figure.
const noClaim = "the paper states no figure"

// Within is OK if ours is within a tolerance of the paper's.
func Within(label, metric string, paper, ours, tolerancePercent float64) Row {
	return Row{Label: label, Metric: metric, Paper: &paper, TolerancePercent: tolerancePercent}.judged(ours, func(ours float64) bool {
		return math.Abs(ours-paper) <= math.Abs(paper)*tolerancePercent/100
	})
}

// judged is the row with a figure of ours, OK by a rule.
func (r Row) judged(ours float64, rule func(ours float64) bool) Row {
	r.Ours, r.OK, r.rule = ours, rule(ours), rule
	return r
}

// Ratio is Within for a quotient of ours.
func Ratio(label, metric string, paper, ours, by, tolerancePercent float64) Row {
	return Within(label, metric, paper, ours/by, tolerancePercent)
}

// AtMost is OK if ours does not exceed the paper's bound by more than the tolerance.
func AtMost(label, metric string, bound, ours, tolerancePercent float64) Row {
	r := Row{
		Label: label, Metric: metric, Paper: &bound, TolerancePercent: tolerancePercent,
		Note: "the paper's is a bound: OK is at most that",
	}
	return r.judged(ours, func(ours float64) bool { return ours <= bound+math.Abs(bound)*tolerancePercent/100 })
}

// AtLeast is OK if ours is not below the paper's bound by more than the tolerance.
func AtLeast(label, metric string, bound, ours, tolerancePercent float64) Row {
	r := Row{
		Label: label, Metric: metric, Paper: &bound, TolerancePercent: tolerancePercent,
		Note: "the paper's is a bound: OK is at least that",
	}
	return r.judged(ours, func(ours float64) bool { return ours >= bound-math.Abs(bound)*tolerancePercent/100 })
}

// Between is OK if ours is within a range that the paper states, with the tolerance at
// both ends. Paper is the middle.
func Between(label, metric string, low, high, ours, tolerancePercent float64) Row {
	low, high = min(low, high), max(low, high)
	middle := (low + high) / 2
	r := Row{
		Label: label, Metric: metric, Paper: &middle, TolerancePercent: tolerancePercent,
		Note: fmt.Sprintf("the paper: from %s to %s; OK is within", number(low), number(high)),
	}
	return r.judged(ours, func(ours float64) bool {
		return ours >= low-math.Abs(low)*tolerancePercent/100 && ours <= high+math.Abs(high)*tolerancePercent/100
	})
}

// Order is OK if every value is above the next. Its label names them: "goodput: DRB > RB
// > RRB".
func Order(label string, descending ...float64) Row {
	ok := true
	for i := 1; i < len(descending); i++ {
		ok = ok && descending[i-1] > descending[i]
	}
	return statement(label, metricOrder, ok)
}

// Sign is a statement about an order or a direction that Order cannot express.
// Like Order's rows it counts for "agrees in sign and order".
func Sign(label string, holds bool) Row { return statement(label, metricOrder, holds) }

// Claim is another statement of the paper that holds or not.
func Claim(label string, holds bool) Row { return statement(label, metricClaim, holds) }

func statement(label, metric string, holds bool) Row {
	paper := 1.0
	r := Row{Label: label, Metric: metric, Paper: &paper, OK: holds}
	if holds {
		r.Ours = 1
	}
	return r
}

// InOrder is a figure of the paper of which only an order is checked: it is OK if the
// order holds, whatever our figure is.
func InOrder(label, metric string, paper, ours float64, holds bool) Row {
	return Row{Label: label, Metric: metric, Paper: &paper, Ours: ours, OK: holds, Note: "OK is the paper's order"}
}

// Info is a figure of ours for which the paper has none. It is always OK, and no verdict
// depends on it.
func Info(label, metric string, ours float64) Row {
	return Row{Label: label, Metric: metric, Ours: ours, OK: true, Note: noClaim}
}

// Judge is the verdict of rows. They agree if all are OK. They agree in sign and order if
// all statements of Order and Sign hold, and there is at least one. Otherwise they
// disagree.
func Judge(rows []Row) Verdict {
	all, order, orders := true, true, 0
	for _, r := range rows {
		all = all && r.OK
		if r.Metric == metricOrder {
			orders++
			order = order && r.OK
		}
	}
	switch {
	case all:
		return Agrees
	case order && orders > 0:
		return AgreesOrder
	}
	return Disagrees
}

// Explained judges as Judge does, and adds a reason if not all rows are OK. It is for
// Outcome.Judge.
func Explained(reason string) func([]Row) (Verdict, string) {
	return func(rows []Row) (Verdict, string) {
		if v := Judge(rows); v != Agrees {
			return v, reason
		}
		return Agrees, ""
	}
}

// Change is the difference of a value from another, in percent.
func Change(from, to float64) float64 { return (to/from - 1) * 100 }
