package hedera

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"weft/flowcell"
	"weft/topology"
)

// Refusal says why a reported flow, or a placement, was not taken. Counters go by it.
type Refusal uint8

// In the order of the checks.
const (
	RefusedNode  Refusal = iota // the node is none of the fabric, or the flow does not begin at it
	RefusedEnds                 // an end is no host's address, or both are the same host's
	RefusedLocal                // there is no choice of paths: the hosts share an edge switch
	RefusedRate                 // more than the host's link carries
	RefusedSmall                // less than an elephant has
	RefusedFull                 // the table is full of larger flows
	RefusedDead                 // a placement: a link of the path is down, or the path is none
	NumRefusals
)

var refusalNames = [NumRefusals]string{"node", "ends", "local", "rate", "small", "full", "dead_path"}

var refusalTexts = [NumRefusals]string{
	"the flow does not begin at the node that reports it",
	"its ends are not two hosts of the fabric",
	"its hosts share an edge switch, so there is no path to choose",
	"its rate, with those of the host's other flows, is above that of the host's link",
	"it is smaller than the threshold of elephants",
	"the table is full of larger flows",
	"a link of the path is down, or the pair has no such path",
}

func (r Refusal) String() string { return refusalNames[r] }

func (r Refusal) Error() string { return "hedera: refused: " + refusalTexts[r] }

// Refusals counts by reason.
type Refusals [NumRefusals]uint64

// ByName returns the counts that are not zero, by the names of their reasons.
func (r Refusals) ByName() map[string]uint64 {
	m := make(map[string]uint64)
	for i, n := range r {
		if n > 0 {
			m[Refusal(i).String()] = n
		}
	}
	return m
}

const (
	// DefaultMaxFlows bounds the elephants that a Loop knows.
	DefaultMaxFlows = 1 << 16
	// DefaultThreshold is which part of a host's link an elephant has (thesis §4.1.1).
	DefaultThreshold = 0.1
	// beyond is what the reported rates of a host's flows may be above its link's, as counters are
	// read late.
	beyond = 1.25
)

// LoopConfig configures a Loop.
type LoopConfig struct {
	Fabric    Fabric
	Rule      string          // one of Rules
	Annealing AnnealingConfig // of the rule annealing
	MaxFlows  int             // 0: DefaultMaxFlows
	Threshold float64         // 0: DefaultThreshold
	// Forget is after how long a flow that is not reported any more has ended.
	Forget time.Duration
}

// Assignment is a flow and its path.
type Assignment struct {
	Node  netip.Addr
	Tuple flowcell.FiveTuple
	Path  int
	Via   netip.Addr
}

// Loop is the control loop of thesis ch. 4: reports come in, and once a period Round places
// the flows.
type Loop struct {
	c       LoopConfig
	rule    Rule
	forked  Fabric // the rule's, which computes while reports come in
	table   *table
	list    []*entry
	work    Work
	busy    bool         // the rule computes: only Finish may tell it what has ended
	ended   []Assignment // since the last Round
	refused Refusals
}

// NewLoop returns a Loop that knows no flow.
func NewLoop(c LoopConfig) (*Loop, error) {
	if c.MaxFlows == 0 {
		c.MaxFlows = DefaultMaxFlows
	}
	if c.Threshold == 0 {
		c.Threshold = DefaultThreshold
	}
	switch {
	case c.Fabric == nil:
		return nil, errors.New("hedera: LoopConfig.Fabric is missing")
	case c.MaxFlows < 1:
		return nil, fmt.Errorf("hedera: LoopConfig.MaxFlows is %d: 1 or more", c.MaxFlows)
	case !(c.Threshold >= 0 && c.Threshold <= 1):
		return nil, fmt.Errorf("hedera: LoopConfig.Threshold is %v: a part of a link, 0 to 1", c.Threshold)
	case c.Forget <= 0:
		return nil, fmt.Errorf("hedera: LoopConfig.Forget is %v: more than 0", c.Forget)
	}
	l := &Loop{c: c, table: newTable(c.MaxFlows, c.Fabric.Hosts())}
	var err error
	l.forked = c.Fabric.Fork()
	l.rule, err = NewRule(c.Rule, l.forked, c.Annealing)
	return l, err
}

// Report takes a flow that a node has measured, in bits a second.
//
// Errors: Refusal.
func (l *Loop) Report(node netip.Addr, tuple flowcell.FiveTuple, rate uint64, now time.Duration) error {
	err := l.report(node, tuple, rate, now)
	if r, ok := err.(Refusal); ok {
		l.refused[r]++
	}
	return err
}

func (l *Loop) report(node netip.Addr, tuple flowcell.FiveTuple, rate uint64, now time.Duration) error {
	f := l.c.Fabric
	src, ok := f.Host(tuple.Src.IP())
	if !ok {
		return RefusedEnds
	}
	if !f.Owns(node, src) {
		return RefusedNode
	}
	dst, ok := f.Host(tuple.Dst.IP())
	if !ok || src == dst {
		return RefusedEnds
	}
	link := f.HostLink(src) * 1e6
	switch {
	case float64(rate) > link*beyond:
		return RefusedRate
	case float64(rate) < link*l.c.Threshold:
		return RefusedSmall
	}
	e := l.table.get(tuple)
	if e != nil && e.node != node && now-e.last <= l.c.Forget/2 {
		return nil // its host and its edge switch both report it: it stays with the one that was first
	}
	if !l.carries(src, e, rate, now) {
		return RefusedRate
	}
	if e != nil {
		if e.node != node {
			l.withdraw(e) // the next round tells the other node
		}
		e.node, e.last = node, now
		l.table.resize(e, rate)
		return nil
	}
	if _, some := f.Via(src, dst, 0, tuple.Dst.Is6()); !some {
		return RefusedLocal
	}
	if e := l.table.victim(src); e != nil {
		if e.rate >= rate {
			return RefusedFull
		}
		l.refused[RefusedFull]++
		l.end(e)
	}
	l.table.add(&entry{Flow: Flow{Pair: Pair{src, dst}}, tuple: tuple, node: node, rate: rate, last: now})
	return nil
}

// carries reports whether a host's link carries a rate, in place of the one that the flow e had
// if it is known, with its other flows. Those that are not reported any more it forgets at once.
func (l *Loop) carries(host topology.NodeID, e *entry, rate uint64, now time.Duration) bool {
	most := uint64(l.c.Fabric.HostLink(host) * 1e6 * beyond)
	fits := func() bool {
		others := l.table.hosts[host].rate
		if e != nil {
			others -= e.rate
		}
		return others+rate <= most
	}
	if fits() {
		return true
	}
	list := l.table.hosts[host].list
	for i := len(list) - 1; i >= 0; i-- { // removing one moves the last into its place
		if x := list[i]; x != e && now-x.last > l.c.Forget/2 {
			l.end(x)
		}
	}
	return fits()
}

// Adopt takes a placement of the scheduler that led before. Unless its node reports the
// flow in time it has ended. It is not for between Begin and Finish.
//
// Errors: Refusal.
func (l *Loop) Adopt(a Assignment, now time.Duration) error {
	f := l.c.Fabric
	src, ok := f.Host(a.Tuple.Src.IP())
	dst, ok2 := f.Host(a.Tuple.Dst.IP())
	switch {
	case !ok || !ok2 || src == dst:
		return RefusedEnds
	case !f.Owns(a.Node, src):
		return RefusedNode
	case !f.Live(src, dst, a.Path):
		return RefusedDead
	case l.table.get(a.Tuple) != nil:
		return nil
	case l.table.victim(src) != nil:
		return RefusedFull
	}
	if via, ok := f.Via(src, dst, a.Path, a.Tuple.Dst.Is6()); !ok || via != a.Via {
		return RefusedDead // it is no path of this fabric
	}
	e := &entry{Flow: Flow{Pair: Pair{src, dst}, Path: a.Path}, tuple: a.Tuple, node: a.Node, last: now,
		told: true, path: a.Path, via: a.Via}
	l.rule.Keep(&e.Flow)
	l.table.add(e)
	return nil
}

// end forgets a flow. If the rule computes, Finish tells it.
func (l *Loop) end(e *entry) {
	if !l.busy {
		l.rule.End(&e.Flow)
	}
	l.withdraw(e)
	l.table.remove(e)
}

// withdraw notes that a flow's placement, if the node knows of one, counts no more.
func (l *Loop) withdraw(e *entry) {
	if e.told {
		l.ended = append(l.ended, Assignment{e.node, e.tuple, e.path, e.via})
		e.told = false
	}
}

// SetFabric goes on with other links down, or rates. Placements whose path is dead now
// count no more; others stay. It must be the same fabric. What a Work is about to find counts
// no more.
func (l *Loop) SetFabric(f Fabric) error {
	if f.Fingerprint() != l.c.Fabric.Fingerprint() {
		return errors.New("hedera: another fabric: begin anew")
	}
	forked := f.Fork()
	rule, err := NewRule(l.c.Rule, forked, l.c.Annealing)
	if err != nil {
		return err
	}
	l.rule, l.c.Fabric, l.forked, l.busy = rule, f, forked, false
	l.list = l.table.all(l.list[:0])
	for _, e := range l.list {
		placed := e.Placed
		e.Flow = Flow{Pair: e.Pair, Path: e.Path}
		switch {
		case placed && f.Live(e.Src, e.Dst, e.Path):
			rule.Keep(&e.Flow)
		case placed:
			l.refused[RefusedDead]++
			l.withdraw(e)
		}
	}
	return nil
}

// Holds reports whether a placement of the last Round counts still: its flow is known and reported, and
// its path has not failed since.
func (l *Loop) Holds(a Assignment, now time.Duration) bool {
	e := l.table.get(a.Tuple)
	return e != nil && e.told && a == Assignment{e.node, e.tuple, e.path, e.via} && now-e.last <= l.c.Forget
}

// Flows returns how many flows are known.
func (l *Loop) Flows() int { return len(l.table.by) }

// Refused returns the counts of what was refused.
func (l *Loop) Refused() Refusals { return l.refused }
