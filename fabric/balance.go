package fabric

import (
	"errors"
	"fmt"

	"weft/internal/balance"
	"weft/internal/elephant"
)

// BalanceConfig says how a switch balances what hosts send that know nothing of weft.
type BalanceConfig struct {
	// Rule is rb, rrb, drb, letflow, drill, conga or luopan, with parameters behind a colon:
	// letflow:gap=500us, drill:d=2,m=1. internal/balance
	// says what each does.
	Rule string

	// Ports are all of the switch's, 1 to 1,024. Of each counts the name and, for drill,
	// what it says of rate and queue, and for conga the rate.
	Ports []MeterPort

	// Routes are the plan's. Their groups count, and only for drill: see GroupsOf.
	Routes []Route

	// Leaf is needed by conga and luopan.
	Leaf LeafConfig

	// Elephants are what a scheduler of elephants needs of the programs: Balance.SetPins and,
	// with PinAndCount, Balance.Flows. With them ecmp is a rule for AttachBalance, too, and conga
	// and luopan are none.
	Elephants elephant.Duty
}

// BalanceStats is what a switch has balanced. Counters are since the programs were attached.
// A super-segment counts as one packet.
type BalanceStats struct {
	Rule         string `json:"rule"`
	Destinations int    `json:"destinations"` // prefixes with several next hops
	LeftOut      int    `json:"left_out"`     // of these, those that the kernel's routes do alone: there was no room
	Grouped      int    `json:"grouped"`      // of these, those with asymmetric ways, on which drill keeps a flow in a group; of ReadBalance 0
	Chosen       uint64 `json:"chosen"`       // packets that the rule has chosen for
	Plain        uint64 `json:"plain"`        // packets that it has left to the kernel's routes: to one way, or a destination without room; with a mark, an outer header, a list of segments or a VLAN's tag; no IP
	Flowlets     uint64 `json:"flowlets"`     // that have begun
	Evicted      uint64 `json:"evicted"`      // flowlets that were forgotten for others before they ended

	Leaf *LeafStats `json:"leaf,omitempty"` // with conga and luopan
}

// sums are in the order of the enum in bpf/balance.c.
func (s *BalanceStats) sums() []*uint64 {
	return []*uint64{&s.Chosen, &s.Plain, &s.Flowlets, &s.Evicted}
}

// CheckBalance says what of a rule's text is wrong.
func CheckBalance(rule string) error {
	_, err := balance.Parse(rule)
	return err
}

// BalancesByProgram reports whether a rule needs AttachBalance. It is false of routes, ecmp
// and two-level, which a NodePlan does, of classifier (see Classifies), and of what is no
// rule.
func BalancesByProgram(rule string) bool {
	r, err := balance.Parse(rule)
	return err == nil && r.ByProgram()
}

// CanonicalBalance returns a rule's text as one of several with the same meaning, "" for one
// that a NodePlan does alone, and what is no rule as it is.
func CanonicalBalance(rule string) string {
	r, err := balance.Parse(rule)
	switch {
	case err != nil:
		return rule
	case !r.ByProgram() && r.Kind != balance.Classifier:
		return ""
	}
	return r.String()
}

// RoutingOf returns the Options.Routing that a rule asks for.
func RoutingOf(rule string) string {
	if r, err := balance.Parse(rule); err == nil && (r.Kind == balance.TwoLevel || r.Kind == balance.Classifier) {
		return RoutingTwoLevel
	}
	return RoutingECMP
}

// GroupsOf reports whether a rule works on groups of next hops: Options.Groups. That is so of
// drill. Where paths are asymmetric, it sends a flow within one of the groups (DRILL §3.4).
func GroupsOf(rule string) bool {
	r, err := balance.Parse(rule)
	return err == nil && r.Kind == balance.DRILL
}

// hashPolicy is the setting by which the kernel's multipath routes heed a packet's hash: 1.
// IPv6 has one of its own with the same values.
// A packet without one they then hash by its five-tuple. With another value they make a hash
// of their own for every packet.
const hashPolicy = "net.ipv4.fib_multipath_hash_policy"

// Balanced returns the plan of a node while AttachBalance balances: without the setting that
// the programs need otherwise than planned, and that a Balance keeps.
func (p NodePlan) Balanced() NodePlan {
	p.Sysctls = deleted(p.Sysctls, func(s Sysctl) bool { return s.Key == hashPolicy })
	return p
}

func (c BalanceConfig) check() (r balance.Rule, err error) {
	if r, err = balance.Parse(c.Rule); err != nil {
		return r, fmt.Errorf("Rule: %w", err)
	}
	switch {
	case r.Kind == balance.Classifier:
		return r, fmt.Errorf("Rule is %v: see OpenClassifier", r)
	case c.Elephants != elephant.Nothing && !Schedulable(c.Rule):
		return r, fmt.Errorf("Rule is %v, under which no flow can be pinned: choose ecmp, rb, rrb, drb, letflow or drill", r)
	case !r.ByProgram() && c.Elephants == elephant.Nothing:
		return r, fmt.Errorf("Rule is %v: the kernel's routes do that alone, so nothing is attached", r)
	case len(c.Ports) == 0 || len(c.Ports) > maxMeterPorts:
		return r, fmt.Errorf("Ports has %d ports, must have 1 to %d", len(c.Ports), maxMeterPorts)
	}
	if err := c.checkLeaf(r); err != nil {
		return r, err
	}
	for _, p := range c.Ports {
		if p.Name == "" {
			return r, errors.New("Ports: a Name is empty; give the device's")
		}
		if r.Kind == balance.DRILL && p.RateBits != 0 { // else it has the device's
			if _, err := p.complete(); err != nil {
				return r, fmt.Errorf("port %s: %w", p.Name, err)
			}
		}
	}
	return r, nil
}

func portNames(ports []MeterPort) (names []string) {
	for _, p := range ports {
		names = append(names, p.Name)
	}
	return names
}

// balanceQueue is struct queue of bpf/balance.c.
type balanceQueue struct {
	Lock  uint32 // the kernel's
	_     uint32
	Byte  uint64 // ns that a byte takes, in 2⁻¹⁶
	Room  uint64 // ns that a full queue takes
	Empty uint64 // ns of the monotonic clock: when all will have left
}

// queue returns a port's virtual queue, which is empty.
func (p MeterPort) queue() (balanceQueue, error) {
	p, err := p.complete()
	if err != nil {
		return balanceQueue{}, err
	}
	room := float64(p.QueueBytes+p.BurstBytes) * 8e9 / p.RateBits
	return balanceQueue{Byte: max(1, uint64(8e9*(1<<16)/p.RateBits)), Room: max(1, uint64(room))}, nil
}

// enter is the program's step for a packet, of which it takes the length on the wire in
// bytes.
func (q *balanceQueue) enter(now, bytes uint64) {
	q.Empty = min(max(q.Empty, now)+bytes*q.Byte>>16, now+q.Room)
}
