// Package classifier is the flow classification of Al-Fares' pod switches (thesis §3.1.6,
// §3.4.2 and Fig. 3.11). A new flow gets the port up that carries least, and all its packets
// go by that port. Now and then a few flows move from the port that carries most to the one
// that carries least. The state is soft: without it a switch still forwards, by other rules.
//
// A Table owns no goroutine and no clock. It is not safe for concurrent use.
package classifier

import (
	"container/list"
	"fmt"
	"net/netip"
	"time"
)

// Flow is the packets of one source and destination, whatever their ports: so does the
// thesis' element (§3.4.2).
type Flow struct{ Src, Dst netip.Addr }

// Config configures a Table. Ports must be given.
type Config struct {
	Ports    int           // up, numbered from 0; 1 to MaxPorts
	Flows    int           // most that are remembered; 0 is DefaultFlows
	Interval time.Duration // between rearrangements; 0 is DefaultInterval
	Idle     time.Duration // after which a flow is forgotten; 0 is DefaultIdle
}

// Defaults and bounds.
const (
	MaxPorts        = 64
	DefaultFlows    = 65536
	DefaultInterval = time.Second // thesis, caption of Fig. 3.11
	DefaultIdle     = 10 * time.Second

	// MaxMoves is how many flows move in one rearrangement (thesis Fig. 3.11).
	MaxMoves = 3
)

// Stats counts what a Table did.
type Stats struct {
	Flows    int    `json:"flows"`    // remembered now
	Assigned uint64 `json:"assigned"` // new flows
	Moved    uint64 `json:"moved"`    // by rearrangements
	Rescued  uint64 `json:"rescued"`  // from dead ports
	Evicted  uint64 `json:"evicted"`  // the idlest, since the table was full
	Idle     uint64 `json:"idle"`     // forgotten after Config.Idle
}

// Move is a flow's change of its port.
type Move struct {
	Flow     Flow
	From, To int
}

// Table is a switch's flows and ports.
type Table struct {
	config Config
	flows  map[Flow]*list.Element // of *entry
	order  *list.List             // the idlest last
	ports  []port
	next   time.Duration // when flows may move again
	begun  bool
	stats  Stats
}

type entry struct {
	flow  Flow
	port  int
	bytes uint64 // in this interval
	seen  time.Duration
}

// port is what a port carries: bytes of the interval that has passed, and of this one.
type port struct {
	before, now uint64
	flows       int
	dead        bool
}

// New returns an empty table.
func New(c Config) (*Table, error) {
	if c.Ports < 1 || c.Ports > MaxPorts {
		return nil, fmt.Errorf("classifier: Ports is %d, must be 1 to %d", c.Ports, MaxPorts)
	}
	if c.Flows < 0 || c.Interval < 0 || c.Idle < 0 {
		return nil, fmt.Errorf("classifier: Flows %d, Interval %v and Idle %v must not be below 0; 0 is the default", c.Flows, c.Interval, c.Idle)
	}
	if c.Flows == 0 {
		c.Flows = DefaultFlows
	}
	if c.Interval == 0 {
		c.Interval = DefaultInterval
	}
	if c.Idle == 0 {
		c.Idle = DefaultIdle
	}
	return &Table{config: c, flows: make(map[Flow]*list.Element), order: list.New(), ports: make([]port, c.Ports)}, nil
}

// Packet returns the port of a packet's flow, and counts its bytes. A flow of a dead port
// gets another one; if all ports are dead it keeps its own.
func (t *Table) Packet(f Flow, bytes int, now time.Duration) (port int) {
	e := t.find(f, now)
	if e == nil {
		e = t.remember(f, t.least(), now)
	} else if to := t.least(); t.ports[e.port].dead && !t.ports[to].dead {
		t.put(e, to)
		t.stats.Rescued++
	}
	t.count(e, uint64(bytes))
	return e.port
}

// Observe is Packet where others have chosen the port already, as a program in the kernel:
// it counts bytes, many packets' at a time.
func (t *Table) Observe(f Flow, port int, bytes uint64, now time.Duration) {
	if port < 0 || port >= len(t.ports) {
		return
	}
	e := t.find(f, now)
	if e == nil {
		e = t.remember(f, port, now)
	} else if e.port != port {
		t.put(e, port)
	}
	t.count(e, bytes)
}

// Rearrange moves up to MaxMoves flows, each time the largest one of the port that carries
// most that is smaller than the difference to the port that carries least (thesis Fig. 3.11).
// What a port carries is the bytes since the last rearrangement. It does nothing until
// Config.Interval has passed since then. It also forgets flows that are idle.
func (t *Table) Rearrange(now time.Duration) (moves []Move) {
	if !t.begun {
		t.begun, t.next = true, now+t.config.Interval
		return nil
	}
	if now < t.next {
		return nil
	}
	t.next = now + t.config.Interval
	for range MaxMoves {
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
	for e := t.order.Back(); e != nil; {
		earlier := e.Prev()
		f := e.Value.(*entry)
		f.bytes = 0
		if now-f.seen >= t.config.Idle {
			t.forget(e)
			t.stats.Idle++
		}
		e = earlier
	}
	return moves
}

// SetDead says whether a port is dead. It gets no flows then.
func (t *Table) SetDead(port int, dead bool) { t.ports[port].dead = dead }

// Dead reports what SetDead has said.
func (t *Table) Dead(port int) bool { return t.ports[port].dead }

// Load returns the bytes that a port has carried since before the last rearrangement: what
// the choice for new flows goes by.
func (t *Table) Load(port int) uint64 { return t.ports[port].before + t.ports[port].now }

// Stats returns what has been counted.
func (t *Table) Stats() Stats {
	s := t.stats
	s.Flows = len(t.flows)
	return s
}

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
	for e := t.order.Front(); e != nil; e = e.Next() {
		f := e.Value.(*entry)
		if f.port == most && f.bytes > 0 && f.bytes < difference && (largest == nil || f.bytes > largest.bytes) {
			largest = f
		}
	}
	if largest == nil {
		return m, false
	}
	t.put(largest, least)
	t.stats.Moved++
	return Move{largest.flow, most, least}, true
}

// least returns the port for a new flow: the least loaded one that lives, of equals that
// with the fewest flows.
func (t *Table) least() int {
	best := 0
	for i := range t.ports {
		if t.before(i, best) {
			best = i
		}
	}
	return best
}

func (t *Table) before(a, b int) bool {
	p, q := t.ports[a], t.ports[b]
	switch {
	case p.dead != q.dead:
		return q.dead
	case t.Load(a) != t.Load(b):
		return t.Load(a) < t.Load(b)
	}
	return p.flows < q.flows
}

func (t *Table) find(f Flow, now time.Duration) *entry {
	e, ok := t.flows[f]
	if !ok {
		return nil
	}
	t.order.MoveToFront(e)
	v := e.Value.(*entry)
	v.seen = now
	return v
}

func (t *Table) remember(f Flow, port int, now time.Duration) *entry {
	if len(t.flows) >= t.config.Flows {
		t.forget(t.order.Back())
		t.stats.Evicted++
	}
	e := &entry{flow: f, port: port, seen: now}
	t.flows[f] = t.order.PushFront(e)
	t.ports[port].flows++
	t.stats.Assigned++
	return e
}

func (t *Table) forget(e *list.Element) {
	f := t.order.Remove(e).(*entry)
	delete(t.flows, f.flow)
	t.ports[f.port].flows--
}

func (t *Table) count(e *entry, bytes uint64) {
	e.bytes += bytes
	t.ports[e.port].now += bytes
}

// put moves a flow with what it has sent in this interval.
func (t *Table) put(e *entry, to int) {
	from := &t.ports[e.port]
	from.now -= e.bytes
	from.flows--
	t.ports[to].now += e.bytes
	t.ports[to].flows++
	e.port = to
}
