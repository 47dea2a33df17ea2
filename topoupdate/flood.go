package topoupdate

// update passes a switch's new record on to the ports that it concerns. A record
// that has changed, or that reports something down, is repeated.
func (a *Agent) update(index int, changed bool) {
	a.flood(index)
	r := &a.repeats[index]
	if changed {
		*r = repeat{a.now + a.config.Hello, a.config.Hello, a.now}
		a.repeatDue = min(a.repeatDue, r.at)
	}
}

// flood queues a switch's record at the ports where forwards has it go.
func (a *Agent) flood(index int) {
	from := int(a.db.records[index].from)
	for i := range a.ports {
		if p := &a.ports[i]; p.listening() && a.goes(index, from, p) {
			p.enqueue(index)
		}
	}
}

// goes is forwards for one port.
func (a *Agent) goes(index, from int, to *port) bool {
	in := toSelf
	if from != Own {
		in = a.ports[from].dir
	}
	return from != to.Index && forwards(a.layer, in, a.fabric.layer(a.db.id(index)), to.dir)
}

// tellAll queues all that a new neighbour must know, as far as forwards lets it pass. So
// a neighbour above gets only this switch's own entry. It needs no more: it hears other
// news from its own neighbours above, or has no path that the news concerns. A neighbour
// that has forgotten its own numbers learns them when it sends its own entry.
func (a *Agent) tellAll(p *port) {
	for i := range a.db.records {
		if r := &a.db.records[i]; r.status == live && a.goes(i, int(r.from), p) {
			p.enqueue(i)
		}
	}
}

// repeatEntries floods again what is due to be repeated. What is due within a
// quarter of a Hello goes along, so that it fits in the same messages.
func (a *Agent) repeatEntries() {
	soon := a.now + a.config.Hello/4
	a.repeatDue = never
	for i := range a.repeats {
		r := &a.repeats[i]
		if r.at == 0 {
			continue
		}
		if r.at <= soon {
			if !a.noteworthy(i) {
				r.at = 0
				continue
			}
			a.flood(i)
			r.every = min(2*r.every, a.config.Repeat)
			r.at = a.now + r.every
		}
		a.repeatDue = min(a.repeatDue, r.at)
	}
}

// noteworthy reports whether a record is worth repeating: it counts, and says or
// has lately said that something is down.
func (a *Agent) noteworthy(index int) bool {
	if a.db.records[index].status != live {
		return false
	}
	return a.now-a.repeats[index].changed <= a.config.Refresh || !bitset(a.db.bits(index)).empty()
}
