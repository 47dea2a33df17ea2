package luopan

import "time"

// maxPast bounds, for each destination, the probes of past rounds that may still be
// answered: at d = 2 those of four rounds.
const maxPast = 8

// past is a probe without an answer whose round has ended. A later answer says nothing
// about the path, but its round trip time counts. Nothing else shows that round trips
// have become longer than rounds. The token says which probe was answered, so no guess is
// needed as with TCP's retransmissions (RFC 6298 §3).
type past struct {
	token   uint64
	began   time.Duration
	host    uint32
	waiting bool
}

// pastProbes is a ring of the latest. The zero value is empty.
type pastProbes struct {
	ring [maxPast]past
	next uint8
}

// find returns the probe with a token that is still waited for, nil if there is none.
func (p *pastProbes) find(token uint64) *past {
	for i := range p.ring {
		if is := &p.ring[i]; is.waiting && is.token == token {
			return is
		}
	}
	return nil
}

// retire remembers the probes that the latest round has had no answer to, before
// another begins.
func (t *Table) retire(slot int32) {
	d := &t.destinations[slot]
	for _, s := range t.round(slot, d.asked) {
		if !s.answered {
			d.past.ring[d.past.next] = past{s.token, d.began, d.target, true}
			d.past.next = (d.past.next + 1) % maxPast
		}
	}
}

// late takes an answer to a probe of a round that is over. Nothing but its round
// trip counts, by which the round under way is given longer.
func (t *Table) late(slot int32, token uint64, from uint32, now time.Duration) {
	d := &t.destinations[slot]
	p := d.past.find(token)
	switch {
	case p == nil:
		t.stats.Unknown++
	case p.host != from:
		t.stats.WrongHost++
	default:
		t.stats.Late++
		p.waiting = false
		d.silent = 0
		t.answered(d, from)
		d.measured(max(now-p.began, 1))
		if d.n[d.asked] > 0 && d.answers[d.asked] == 0 {
			t.dueAt(slot, d.began+t.patience(d))
		}
	}
}
