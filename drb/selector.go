package drb

import "math/rand/v2"

// Rule is a way to choose a bouncing switch.
type Rule uint8

// The rules.
const (
	DigitReversal Rule = iota // DRB: next in digit-reversed order
	RoundRobin                // RRB: next in numerical order
	Random                    // RB: random, uniformly or by weight
	Hash                      // by the flow's hash
)

func (r Rule) String() string {
	return [...]string{"digit reversal", "round robin", "random", "hash"}[r]
}

// Order lists the live paths in the order in which the rule visits them. live is
// ascending, and has each path as often as its weight says. The order has it as often,
// spread as evenly as whole steps allow if the rule takes turns. The order depends on the
// arguments alone, so any number of Selectors may share it. It must not be changed, and
// may be live itself.
func (r Rule) Order(bases, live []int) []int {
	switch {
	case r == DigitReversal:
		return interleave(bases, live)
	case r == RoundRobin && repeats(live):
		// One layer that branches into all paths.
		return interleave([]int{live[len(live)-1] + 1}, live)
	}
	return live
}

// repeats reports whether an ascending list has an element twice.
func repeats(list []int) bool {
	for i := 1; i < len(list); i++ {
		if list[i] == list[i-1] {
			return true
		}
	}
	return false
}

// Selector chooses paths for one pair and one kind of packet: the single
// integer of state of DRB §4.2. It is not safe for concurrent use.
type Selector struct {
	order []int
	next  int
	rule  Rule
	rng   rand.PCG
}

// NewSelector returns a Selector for an order that the same rule made. It starts at a
// random place, drawn from seed.
func NewSelector(rule Rule, order []int, seed uint64) Selector {
	s := Selector{order: order, rule: rule, rng: *rand.NewPCG(seed, 0x77656674)}
	if len(order) > 0 {
		s.next = s.random()
	}
	return s
}

// StartAt makes step n of the order the next one.
func (s *Selector) StartAt(n int) {
	if len(s.order) > 0 {
		s.next = n % len(s.order)
	}
}

// Next returns the path of the next unit, and false when no path is live. hash
// is the flow's; only the Hash rule looks at it.
func (s *Selector) Next(hash uint64) (path int, ok bool) {
	n := len(s.order)
	if n == 0 {
		return 0, false
	}
	switch s.rule {
	case Random:
		return s.order[s.random()], true
	case Hash:
		return s.order[hash%uint64(n)], true
	}
	path = s.order[s.next]
	if s.next++; s.next == n {
		s.next = 0
	}
	return path, true
}

// Touch reads what Next will need, so that this read overlaps with others. The result has
// no meaning.
func (s *Selector) Touch() int { return s.next }

func (s *Selector) random() int { return int(s.rng.Uint64() % uint64(len(s.order))) }
