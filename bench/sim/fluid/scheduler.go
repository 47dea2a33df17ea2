package fluid

// Transfer is a flow under way.
type Transfer struct {
	Pair
	Nth  uint64 // of the run
	Path int

	demand float64 // what a FirstFit has reserved for it; 0: nothing
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

// GlobalFirstFit hashes new flows. Once a period it reserves the demand of flows without
// a reservation; reservations last as long as the flows (thesis §4.2.3).
type GlobalFirstFit struct {
	hash      *Hash
	fit       *FirstFit
	estimator Estimator
	pairs     []Pair
}

// NewGlobalFirstFit returns one that falls back on a hash.
func NewGlobalFirstFit(h *Hash) *GlobalFirstFit {
	return &GlobalFirstFit{hash: h, fit: NewFirstFit(h.Fabric)}
}

// Begin is Scheduler's.
func (g *GlobalFirstFit) Begin(t *Transfer) { t.Path = g.hash.Path(t.Pair, t.Nth) }

// Round is Scheduler's.
func (g *GlobalFirstFit) Round(under []*Transfer) {
	g.pairs = pairsOf(g.pairs[:0], under)
	for i, d := range g.estimator.Estimate(g.pairs, g.hash.Fabric.Hosts()) {
		t := under[i]
		if t.demand > 0 {
			continue
		}
		if path, ok := g.fit.Place(t.Pair, d); ok {
			t.Path, t.demand = path, d
		}
	}
}

// End is Scheduler's.
func (g *GlobalFirstFit) End(t *Transfer) {
	if t.demand > 0 {
		g.fit.Release(t.Pair, t.Path, t.demand)
	}
}

// Annealed hashes new flows, and once a period moves all flows to the paths of an
// Annealing.
type Annealed struct {
	hash      *Hash
	annealing *Annealing
	estimator Estimator
	pairs     []Pair
}

// NewAnnealed returns one that begins with a hash.
func NewAnnealed(h *Hash, a *Annealing) *Annealed { return &Annealed{hash: h, annealing: a} }

// Begin is Scheduler's.
func (s *Annealed) Begin(t *Transfer) { t.Path = s.hash.Path(t.Pair, t.Nth) }

// Round is Scheduler's.
func (s *Annealed) Round(under []*Transfer) {
	s.pairs = pairsOf(s.pairs[:0], under)
	s.annealing.Schedule(s.pairs, s.estimator.Estimate(s.pairs, s.hash.Fabric.Hosts()))
	for _, t := range under {
		t.Path = s.annealing.Path(t.Pair)
	}
}

// End is Scheduler's.
func (s *Annealed) End(*Transfer) {}

func pairsOf(pairs []Pair, under []*Transfer) []Pair {
	for _, t := range under {
		pairs = append(pairs, t.Pair)
	}
	return pairs
}
