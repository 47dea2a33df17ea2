// Package classifier is the flow classification of Al-Fares' pod switches (thesis §3.1.6,
// §3.4.2 and Fig. 3.11). All packets of a flow go by one port up. Now and then a few flows
// move from the port that carries most to the one that carries least. A program in the
// kernel chooses the ports of new flows (fabric/bpf/classify.c) and counts. The state is
// soft: without it a switch still forwards, by other rules.
//
// A Table owns no goroutine and no clock. It is not safe for concurrent use.
package classifier

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Flow is the packets of one source and destination, whatever their ports: so does the
// thesis' element (§3.4.2).
type Flow struct{ Src, Dst netip.Addr }

// Bounds.
const (
	MaxPorts = 64

	maxFlows = 65536            // as the program's
	maxIdle  = 10 * time.Second // after which a flow is forgotten
)

// Move is a flow's change of its port.
type Move struct {
	Flow     Flow
	From, To int
}

// Table is a switch's flows and ports up.
type Table struct {
	moves int // in one rearrangement
	flows map[Flow]*entry
	order []*entry // the same, in the order in which they came
	ports []port
}

type entry struct {
	flow    Flow
	port    int
	total   uint64 // bytes, as they were observed last
	bytes   uint64 // in this interval
	changed time.Duration
}

// port is what a port carries: bytes of the interval that has passed, and of this one.
type port struct {
	before, now uint64
	dead        bool
}

// New returns an empty table of ports that are numbered from 0. A rearrangement moves up to
// moves flows, three in the thesis (Fig. 3.11).
func New(ports, moves int) (*Table, error) {
	switch {
	case ports < 1 || ports > MaxPorts:
		return nil, fmt.Errorf("classifier: %d ports, must be 1 to %d", ports, MaxPorts)
	case moves < 1:
		return nil, fmt.Errorf("classifier: %d moves, must be 1 or more", moves)
	}
	return &Table{moves: moves, flows: make(map[Flow]*entry), ports: make([]port, ports)}, nil
}

// Observe says by which port a flow goes and how many bytes it has sent since it is known. A
// number below the last one counts as no bytes, as the program may have counted while it
// was told of a move. Flows for which there is no room do not count.
func (t *Table) Observe(f Flow, port int, total uint64, now time.Duration) {
	if port < 0 || port >= len(t.ports) {
		return
	}
	e := t.flows[f]
	switch {
	case e == nil && len(t.flows) >= maxFlows:
		return
	case e == nil:
		e = &entry{flow: f, port: port, changed: now}
		t.flows[f], t.order = e, append(t.order, e)
	case e.port != port:
		t.put(e, port)
	}
	if total > e.total {
		e.bytes += total - e.total
		t.ports[port].now += total - e.total
		e.changed = now
	}
	e.total = total
}

// Rearrange ends an interval. It moves flows, each time the largest one of the
// port that carries most that is smaller than the difference to the port that carries least
// (thesis Fig. 3.11). What a port carries is the bytes since the last rearrangement.
func (t *Table) Rearrange() (moves []Move) {
	for range t.moves {
		m, ok := t.move()
		if !ok {
			break
		}
		moves = append(moves, m)
	}
	for i := range t.ports {
		p := &t.ports[i]
		p.before, p.now = p.now, 0
	}
	for _, e := range t.order {
		e.bytes = 0
	}
	return moves
}

// Forget forgets flows that have sent nothing for 10 s, up to n of them, and returns them. There
// are no others if these are fewer. Call it after Rearrange: it leaves those that have sent
// something since.
func (t *Table) Forget(now time.Duration, n int) (idle []Flow) {
	t.order = slices.DeleteFunc(t.order, func(e *entry) bool {
		if len(idle) == n || e.bytes > 0 || now-e.changed < maxIdle {
			return false
		}
		delete(t.flows, e.flow)
		idle = append(idle, e.flow)
		return true
	})
	return idle
}

// SetDead says whether a port is dead. No flow moves to it or from it then: those that it
// has get other ports from the program.
func (t *Table) SetDead(port int, dead bool) { t.ports[port].dead = dead }

// Dead reports what SetDead has said.
func (t *Table) Dead(port int) bool { return t.ports[port].dead }

// Load returns the bytes that a port has carried since before the last rearrangement: what
// the choice for new flows goes by.
func (t *Table) Load(port int) uint64 { return t.ports[port].before + t.ports[port].now }

// Flows returns how many flows are known.
func (t *Table) Flows() int { return len(t.flows) }

// move moves one flow.
func (t *Table) move() (m Move, ok bool) {
	most, least := -1, -1
	for i, p := range t.ports {
		if p.dead {
			continue
		}
		if most < 0 || p.now > t.ports[most].now {
			most = i
		}
		if least < 0 || p.now < t.ports[least].now {
			least = i
		}
	}
	if most < 0 {
		return m, false
	}
	difference := t.ports[most].now - t.ports[least].now
	var largest *entry
	for _, e := range t.order {
		if e.port == most && e.bytes > 0 && e.bytes < difference && (largest == nil || e.bytes > largest.bytes) {
			largest = e
		}
	}
	if largest == nil {
		return m, false
	}
	t.put(largest, least)
	return Move{largest.flow, most, least}, true
}

// put moves a flow with what it has sent in this interval.
func (t *Table) put(e *entry, to int) {
	t.ports[e.port].now -= e.bytes
	t.ports[to].now += e.bytes
	e.port = to
}
