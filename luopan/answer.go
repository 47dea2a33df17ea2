package luopan

import (
	"slices"
	"time"
)

// Answer is the content of an answer to a probe.
type Answer struct {
	Token  uint64
	Path   int
	Queue  uint8 // the sum of the queues on the path, in Config.QueueUnit; 127 means 127 or more
	Meters uint8 // how many switches have added to it
	Marked bool  // the probe had a congestion mark
	// Received is when the probe came in, by the answerer's clock, which may have any
	// origin; 0 if unknown.
	Received time.Duration
}

// Answer takes an answer. from is its sender, as host in Choose. Answer returns false and
// counts the cause if the answer belongs to no probe of the latest round, comes a second
// time, names another path, or comes from another host than was asked. An answer to an
// earlier round is late: only its round trip time counts. The cost grows with the number
// of samples and is bounded by it.
func (t *Table) Answer(a Answer, from uint32, now time.Duration) (ok bool) {
	now = t.tell(now)
	number, index := openToken(a.Token)
	if number >= len(t.destinations) {
		t.stats.Unknown++
		return false
	}
	slot := int32(number)
	d := &t.destinations[slot]
	round := t.round(slot, d.asked)
	if index >= len(round) || round[index].token != a.Token {
		t.late(slot, a.Token, from, now)
		return false
	}
	s := &round[index]
	switch {
	case d.target != from:
		t.stats.WrongHost++
		return false
	case int(s.path) != a.Path:
		t.stats.WrongPath++
		return false
	case s.answered:
		t.stats.Replayed++
		return false
	}
	t.stats.Answers++
	s.answered, s.at = true, now
	s.rtt = max(now-d.began, 1)
	s.queue, s.meters, s.marked = min(a.Queue, maxQueue), a.Meters, a.Marked
	s.received, s.oneWay = a.Received != 0, a.Received-d.began
	d.measured(s.rtt)
	t.answered(d, from)
	if d.answers[d.asked]++; d.answers[d.asked] == 1 {
		t.show(slot, now)
	}
	t.weigh(slot, d.asked)
	return true
}

// answered takes note of who has answered.
func (t *Table) answered(d *destination, host uint32) {
	t.mutes.answered(host)
	if i := slices.Index(d.hosts[:d.nHosts], host); i >= 0 {
		d.known[i] = true
	}
}

// show puts the round that was asked for last to use.
func (t *Table) show(slot int32, now time.Duration) {
	d := &t.destinations[slot]
	d.shown, d.silent, d.resting = d.asked, 0, false
	d.loose, d.sent = 0, 0
	expiry := t.expiry(d)
	d.first, d.next = now, now+expiry
	t.dueAt(slot, d.next)
	// What is old is better than nothing while the next round is on its way.
	d.until = d.next + max(expiry, 2*d.rtt)
}

// measured takes note of a round trip (RFC 6298 §2's gains). The least is forgotten
// slowly, since routes change.
func (d *destination) measured(rtt time.Duration) {
	rtt = min(rtt, maxTime)
	if d.rtt == 0 {
		d.rtt, d.vary, d.least = rtt, rtt/2, rtt
		return
	}
	d.vary += (max(rtt-d.rtt, d.rtt-rtt) - d.vary) / 4
	d.rtt += (rtt - d.rtt) / 8
	d.least = min(d.least+(rtt-d.least)/256, rtt)
}
