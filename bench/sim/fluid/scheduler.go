package fluid

import "weft/hedera"

// Transfer is a flow under way.
type Transfer struct {
	hedera.Flow
	Nth uint64 // of the run
}

// Scheduler gives flows their paths.
type Scheduler interface {
	// Begin sets the Path of a flow that begins.
	Begin(t *Transfer)
	// Round may set other Paths; it is called once a period.
	Round(under []*Transfer)
	// End is told of a flow that has ended.
	End(t *Transfer)
}

// Static leaves flows on the path they begin with.
type Static func(t *Transfer) int

// Begin, Round and End are Scheduler's.
func (s Static) Begin(t *Transfer) { t.Path = s(t) }
func (s Static) Round([]*Transfer) {}
func (s Static) End(t *Transfer)   {}

// ECMP hashes.
func ECMP(h *Hash) Scheduler {
	return Static(func(t *Transfer) int { return h.Path(t.Pair, t.Nth) })
}

// NonBlocking puts all hosts at one switch.
var NonBlocking Scheduler = Static(func(*Transfer) int { return Direct })

// Scheduled hashes new flows, and once a period moves them to the paths of a rule.
type Scheduled struct {
	hash  *Hash
	rule  hedera.Rule
	flows []*hedera.Flow
}

// NewScheduled returns a rule's scheduler that begins with a hash.
func NewScheduled(h *Hash, r hedera.Rule) *Scheduled { return &Scheduled{hash: h, rule: r} }

// Begin is Scheduler's.
func (s *Scheduled) Begin(t *Transfer) { t.Path = s.hash.Path(t.Pair, t.Nth) }

// Round is Scheduler's.
func (s *Scheduled) Round(under []*Transfer) {
	s.flows = s.flows[:0]
	for _, t := range under {
		s.flows = append(s.flows, &t.Flow)
	}
	s.rule.Round(s.flows)
}

// End is Scheduler's.
func (s *Scheduled) End(t *Transfer) { s.rule.End(&t.Flow) }
