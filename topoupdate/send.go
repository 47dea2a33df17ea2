package topoupdate

// Send calls f for each message that must be sent now. The bytes are valid only during
// the call. Messages for ports at which nobody listens are not kept.
func (a *Agent) Send(f func(port int, packet []byte)) {
	for i := range a.ports {
		p := &a.ports[i]
		if p.dir != toHost && a.started && a.now >= p.helloDue {
			if p.carrier {
				a.sendHello(p, f)
			} else {
				p.helloDue = a.now + a.config.Hello
			}
		}
		for p.waiting && p.listening() && p.pace.Take(1, a.now) {
			a.sendUpdate(p, f)
		}
	}
}

func (a *Agent) begin(p *port, kind byte, count int) []byte {
	h := header{
		kind: kind, count: count, sender: a.config.Self, senderPort: p.Index,
		session: p.adj.mine, counter: p.counter, heard: p.adj.theirs,
	}
	if p.dir == toHost {
		h.session = a.config.Boot
	}
	p.counter++
	return appendHeader(a.packet[:0], &h, a.fabric.fingerprint)
}

func (a *Agent) sendHello(p *port, f func(int, []byte)) {
	b := appendHello(a.begin(p, typeHello, 0), hello{
		interval: a.config.Hello, multiplier: a.config.Multiplier,
		down: !p.adj.alive, leaving: a.stats.Left,
	})
	p.helloSent = a.now
	p.helloDue = a.now + jitter(a.random, a.config.Hello)
	if a.stats.Left {
		p.helloDue = never
	}
	a.stats.HellosSent++
	f(p.Index, a.ring.Sign(b, a.now))
}

// sendUpdate sends as much of what is pending as fits into one message.
func (a *Agent) sendUpdate(p *port, f func(int, []byte)) {
	b := a.begin(p, typeUpdate, 0)
	count, full := 0, false
	p.pending.each(func(i int) bool {
		end := len(b)
		b = a.db.appendClaim(b, i, a.now, a.scratch)
		if full = len(b)+a.ring.Overhead() > MaxMessage; full {
			b = b[:end]
			return false
		}
		p.pending.remove(i)
		count++
		return true
	})
	p.waiting = full
	if count == 0 {
		return // the neighbour has said it all meanwhile
	}
	b[atCount], b[atCount+1] = byte(count>>8), byte(count)
	a.stats.UpdatesSent++
	a.stats.EntriesSent += uint64(count)
	f(p.Index, a.ring.Sign(b, a.now))
}
