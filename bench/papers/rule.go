package papers

import "math"

// rule says which figures of ours are OK. It is data, so that what one machine has run is
// judged on another.
type rule struct {
	Is      string  `json:"is"`
	A       float64 `json:"a"`           // the paper's figure or bound, or the lower end
	B       float64 `json:"b,omitempty"` // the upper end
	Percent float64 `json:"percent"`     // tolerance
}

// What a rule asks of a figure.
const (
	isWithin  = "within"
	isAtMost  = "at_most"
	isAtLeast = "at_least"
	isBetween = "between"
)

// holds reports whether a figure is OK. By a rule that nobody knows none is.
func (r rule) holds(ours float64) bool {
	slack := func(x float64) float64 { return math.Abs(x) * r.Percent / 100 }
	switch r.Is {
	case isWithin:
		return math.Abs(ours-r.A) <= slack(r.A)
	case isAtMost:
		return ours <= r.A+slack(r.A)
	case isAtLeast:
		return ours >= r.A-slack(r.A)
	case isBetween:
		return ours >= r.A-slack(r.A) && ours <= r.B+slack(r.B)
	}
	return false
}
