package topoupdate

import (
	"time"

	"weft/topology"
)

// Receive takes a message that came in by a port, any bytes, and keeps none of them. A
// wrong message is counted and has no effect.
func (a *Agent) Receive(port int, packet []byte, now time.Duration) {
	a.advance(now)
	a.stats.Received++
	if err := a.receive(port, packet); err != nil {
		a.stats.Rejected.add(err)
	}
	a.finish()
}

// receive examines a message in the order of what that costs.
func (a *Agent) receive(port int, packet []byte) error {
	h, err := parseHeader(packet, a.fabric.fingerprint)
	if err != nil {
		return err
	}
	if port < 0 || port >= len(a.ports) {
		return RejectSender
	}
	p := &a.ports[port]
	if p.dir == toHost || h.sender != p.Peer || h.senderPort != p.PeerPort {
		if p.dir != toHost { // servers only listen
			a.meet(p, &h, packet)
		}
		return RejectSender
	}
	if err := p.adj.screen(&h); err != nil {
		return err
	}
	if packet, err = a.ring.Verify(packet); err != nil {
		return err
	}
	body := packet[headerSize:]
	if h.kind == typeHello {
		m, err := parseHello(body, h.count)
		if err != nil {
			return err
		}
		a.admit(p, &h)
		a.hello(p, &h, m)
		return nil
	}
	if err := a.checkEntries(body, h.count, p); err != nil {
		return err
	}
	a.admit(p, &h)
	a.settle(p)
	a.takeEntries(body, p)
	return nil
}

// admit takes note of a genuine message. Whoever is new to us is answered at
// once, so that an adjacency takes a round trip and not several Hellos.
func (a *Agent) admit(p *port, h *header) {
	known := p.adj.theirs == h.session
	up := p.adj.admit(h, a.now)
	if !known || up {
		a.hurry(p)
	}
	if up && p.carrier {
		a.tellAll(p)
	}
}

// hello takes what only a hello says, of a message that has been admitted.
func (a *Agent) hello(p *port, h *header, m hello) {
	was := p.adj.alive
	p.adj.hello(h, m, a.config.Multiplier, a.nextSession, a.now)
	if p.adj.alive != was {
		a.hurry(p)
	}
	if !p.adj.proven {
		p.drop()
	}
	a.settle(p)
}

// checkEntries checks all entries of a message before any has an effect.
func (a *Agent) checkEntries(body []byte, count int, p *port) error {
	return a.fabric.checkEntries(body, count, func(originator topology.NodeID) bool {
		// An edge switch's entry is its servers', and comes back to itself at most.
		return a.fabric.layer(originator) != topology.LayerEdge
	})
}

// checkEntries checks all entries of an update; of hears which originators may
// occur in it.
func (f *fabric) checkEntries(body []byte, count int, hears func(topology.NodeID) bool) error {
	for range count {
		c, rest, err := nextEntry(body)
		if err != nil {
			return err
		}
		if err := f.check(&c); err != nil {
			return err
		}
		if !hears(c.originator) {
			return RejectOriginator
		}
		body = rest
	}
	if len(body) > 0 {
		return RejectTrailing
	}
	return nil
}

// takeEntries takes checked entries that came in by p.
func (a *Agent) takeEntries(body []byte, p *port) {
	for len(body) > 0 {
		c, rest, err := nextEntry(body)
		if err != nil {
			return // checked before
		}
		body = rest
		if err := a.take(&c, p); err != nil {
			a.stats.Rejected.add(err)
		}
	}
}

// take applies one entry.
//
// Errors: RejectAge, RejectBudget; the entry then has no effect.
func (a *Agent) take(c *claim, p *port) error {
	index := a.db.index(c.originator)
	kind := a.db.judge(c)
	if index == a.self {
		return a.outbid(c, kind, p)
	}
	if kind == same {
		a.stats.Repeated++
		p.pending.remove(index) // the neighbour has it
		return nil
	}
	if kind != older && c.age >= a.config.MaxAge {
		return RejectAge
	}
	if !p.budget.Take(1, a.now) {
		return RejectBudget
	}
	switch kind {
	case older:
		// Whoever is behind is told, against the rules of where entries go: it may
		// be the originator itself, restarted, who must outbid what is known.
		a.stats.Older++
		if a.db.records[index].status == live || c.originator == p.Peer {
			p.enqueue(index)
		}
	case fresh, changed:
		a.stats.Refreshed++
		if kind == changed {
			a.stats.Refreshed--
			a.stats.Changed++
		}
		a.db.store(c, p.Index, a.now)
		a.update(index, kind == changed)
		p.pending.remove(index)
	}
	return nil
}

// outbid answers an entry of our own that others have. One that is newer than
// ours is of an earlier life, whose clock was ahead of ours.
func (a *Agent) outbid(c *claim, kind news, p *port) error {
	switch {
	case kind == older:
		return nil
	case kind == same && a.db.says(a.self, c.bitmap):
		a.stats.Repeated++
		return nil
	case !p.budget.Take(1, a.now):
		return RejectBudget
	}
	a.db.records[a.self].version = c.version
	a.stats.Outbid++
	a.moved = true
	return nil
}
