package topoupdate

import (
	"math/rand/v2"
	"time"

	"weft/topology"
)

// Agent is a switch's part of the protocol: a state machine. It is not safe for
// concurrent use. Its driver calls Carrier, Receive and Tick as things happen, then Send,
// and Tick again when Next says so. now counts from an arbitrary start. A now before the
// latest counts as the latest.
//
// Its memory is fixed when it is made: a record for each switch of the fabric, and for
// each port a bit for each switch.
type Agent struct {
	config AgentConfig
	fabric *fabric
	ring   *Keyring
	layer  topology.Layer
	self   int // own index in db
	db     *database
	ports  []port

	started   bool
	now       time.Duration
	session   uint64 // the last number given to an attempt at an adjacency
	moved     bool   // own ports have changed since the own entry was made
	refreshAt time.Duration
	repeats   []repeat
	repeatDue time.Duration // no later than the first of repeats
	random    *rand.Rand
	scratch   []uint64
	packet    []byte
	stats     AgentStats
}

// repeat is when an entry must be sent again.
type repeat struct {
	at      time.Duration // 0: not
	every   time.Duration
	changed time.Duration // when it last said something else
}

// Topology returns the baseline without the links that are down: those that either end
// reports, and the switch's own, including those to servers. The pointer changes only
// when a link's state has changed. The caller may keep it; it is immutable.
func (a *Agent) Topology() *topology.Topology { return a.db.topology() }

// advance begins every call that has the time.
func (a *Agent) advance(now time.Duration) {
	a.now = max(a.now, now)
	if a.started {
		return
	}
	a.started = true
	for i := range a.ports {
		p := &a.ports[i]
		if p.dir == toHost {
			continue
		}
		p.adj = adjacency{mine: a.nextSession(), deadline: never, detect: a.detection()}
		p.adj.verdict(true, whySilent, a.now)
		if a.config.Require {
			p.adj.verdict(true, whyWaiting, a.now)
			p.adj.deadline = a.now + p.adj.detect
		}
		p.helloDue = a.now + time.Duration(a.random.Int64N(int64(a.config.Hello)))/4
	}
	a.db.records[a.self] = record{version: version{a.config.Boot, firstSequence - 1}, born: a.now, from: Own, status: live}
	a.originate()
	a.update(a.self, true)
}

// detection is how long a neighbour may be silent that has not told us.
func (a *Agent) detection() time.Duration {
	return min(a.config.Hello*time.Duration(a.config.Multiplier), maxDetection)
}

func (a *Agent) nextSession() uint64 {
	a.session++
	return a.session
}

// Carrier records the carrier of a port, as the kernel reports it. Unknown ports are
// ignored.
func (a *Agent) Carrier(port int, up bool, now time.Duration) {
	a.advance(now)
	if port < 0 || port >= len(a.ports) || a.ports[port].carrier == up {
		return
	}
	p := &a.ports[port]
	p.carrier = up
	switch {
	case !up && p.dir != toHost:
		p.adj.lose(whyCarrier, a.nextSession(), a.now)
		a.lost(p)
	case !up:
		p.drop()
	case p.listening():
		a.tellAll(p)
	case !p.adj.spoken && !a.config.Require:
		p.adj.verdict(true, whySilent, a.now)
	default:
		p.adj.verdict(false, whyWaiting, a.now)
		p.helloDue = a.now
	}
	a.settle(p)
	a.finish()
}

// lost follows the end of an adjacency: the neighbour is told at once, should it
// hear us.
func (a *Agent) lost(p *port) {
	p.drop()
	a.hurry(p)
	a.settle(p)
}

// hurry has a hello sent before its time, but not more than four in a Hello.
func (a *Agent) hurry(p *port) {
	p.helloDue = min(p.helloDue, max(a.now, p.helloSent+a.config.Hello/4))
}

// settle lets what is known of a port's link have its effect.
func (a *Agent) settle(p *port) {
	if p.link.set(p.works(), &a.config.Damping, a.now) {
		a.report(p)
	}
}

// report puts the state of a port into the own entry.
func (a *Agent) report(p *port) {
	a.stats.Reports++
	w, bit := p.Index/64, uint64(1)<<(p.Index%64)
	state := a.db.bits(a.self)[w] &^ bit
	if p.link.down {
		state |= bit
		a.stats.LinkDowns++
	}
	a.db.set(a.self, w, state)
	a.moved = a.moved || p.dir != toHost // a server's link is nobody else's
}

// spare holds no link back that is the last way up: a link that may fail again is
// better than none.
func (a *Agent) spare() {
	var held *port
	for i := range a.ports {
		switch p := &a.ports[i]; {
		case p.dir != toUp:
		case !p.link.down:
			return
		case p.link.good && held == nil:
			held = p
		}
	}
	if held != nil {
		held.link.upAt = a.now
		held.link.expire(a.now)
		a.report(held)
	}
}

// finish ends every call that may have changed something: one new entry tells
// of all of it.
func (a *Agent) finish() {
	a.spare()
	if a.moved {
		a.originate()
		a.update(a.self, true)
	}
}

// originate makes a new entry of the own ports.
func (a *Agent) originate() {
	a.moved = false
	r := &a.db.records[a.self]
	r.sequence++
	r.born = a.now
	a.stats.Originated++
	a.refreshAt = a.now + jitter(a.random, a.config.Refresh)
}

// jitter takes up to a quarter off (RFC 5880 §6.8.7).
func jitter(r *rand.Rand, d time.Duration) time.Duration {
	return d - time.Duration(r.Int64N(int64(d)/4+1))
}

// excuse makes up for a Tick that comes later than a hello was due by half of the
// time between them.
func (a *Agent) excuse() {
	var late time.Duration
	for i := range a.ports {
		if p := &a.ports[i]; p.dir != toHost {
			late = max(late, a.now-p.helloDue)
		}
	}
	if late <= a.config.Hello/2 {
		return
	}
	a.stats.Late++
	for i := range a.ports {
		a.ports[i].adj.excuse(late, a.now)
	}
}

// Tick does what is due.
func (a *Agent) Tick(now time.Duration) {
	a.advance(now)
	a.excuse()
	for i := range a.ports {
		p := &a.ports[i]
		if p.dir != toHost && p.adj.expire(a.nextSession, a.now) {
			a.lost(p)
		}
		if p.link.expire(a.now) {
			a.report(p)
		}
	}
	a.db.expire(a.now)
	if a.now >= a.repeatDue {
		a.repeatEntries()
	}
	if a.now >= a.refreshAt && !a.moved {
		a.originate()
		a.update(a.self, false)
	}
	a.finish()
}

// Next returns when Tick, and then Send, are due. It changes with every call.
func (a *Agent) Next() time.Duration {
	if !a.started {
		return 0
	}
	t := min(a.refreshAt, a.repeatDue, a.db.due)
	for i := range a.ports {
		t = min(t, a.ports[i].next())
	}
	return t
}

// Leave makes the next Send announce the end to all neighbours. When an agent ends in an
// orderly way, for example for an update, its links still work, and the neighbours judge
// them by their carrier again. Only Send may follow.
func (a *Agent) Leave(now time.Duration) {
	a.advance(now)
	a.stats.Left = true
	for i := range a.ports {
		a.ports[i].helloDue = a.now
		a.ports[i].drop()
	}
}

// SetKeys replaces the keys, for example to start a change of keys.
func (a *Agent) SetKeys(k Keys) error {
	ring, err := NewKeyring(k)
	if err == nil {
		a.ring = ring
	}
	return err
}
