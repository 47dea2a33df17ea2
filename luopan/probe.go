package luopan

import "time"

// Probe is a probe to send by Path to Host, in the rack Destination. The answer must
// carry Token.
type Probe struct {
	Destination uint32
	Host        uint32 // IPv4, big-endian
	Path        int
	Token       uint64
}

// Next returns when to call Probes: a time, perhaps past, or Never. Any other method may
// make it earlier.
func (t *Table) Next() time.Duration {
	due := t.due.Next()
	if due == Never {
		return Never
	}
	return max(due, t.blocked)
}

// Probes calls send for every probe that is due, and forgets racks without traffic. send
// must not call the Table. The cost grows with the probes and racks that are due, not
// with the number of racks.
func (t *Table) Probes(now time.Duration, send func(Probe)) {
	now = t.tell(now)
	t.blocked = 0
	for t.due.Next() <= now {
		slot := t.due.First()
		d := &t.destinations[slot]
		if now-d.used > t.config.Idle {
			t.remove(slot)
			t.stats.Idle++
			continue
		}
		n := min(t.config.Samples, len(d.paths))
		if !t.budget.Take(n, now) {
			t.blocked = t.budget.Ready(n)
			t.stats.Deferred++
			return
		}
		switch {
		case d.resting, d.calm: // the round has had its say
		case d.answers[d.asked] > 0:
			t.learn(slot, now)
			t.adapt(slot)
		case d.n[d.asked] > 0:
			d.silent = min(d.silent+1, maxSilent)
			t.mutes.silent(d.target, d.knows(d.target), d.began)
			t.stats.Silent++
		}
		if d.calm = t.calm(d); d.calm {
			t.budget.Give(n)
			t.dueAt(slot, d.used+t.config.Idle+1)
			continue
		}
		host, ready := t.willing(d, now)
		if d.resting = ready > now; d.resting {
			t.budget.Give(n)
			t.dueAt(slot, ready)
			continue
		}
		d.target = host
		t.ask(slot, now, send)
	}
}

// ask begins a round, of the rack's target. The one whose answers are in use stays as it is.
func (t *Table) ask(slot int32, now time.Duration, send func(Probe)) {
	d := &t.destinations[slot]
	t.retire(slot)
	t.gauge(d, now)
	before := t.round(slot, d.asked)
	d.asked = d.shown
	if d.answers[d.shown] > 0 {
		d.asked = 1 - d.shown
	}
	d.n[d.asked] = uint8(min(t.config.Samples, len(d.paths)))
	d.answers[d.asked] = 0
	d.began, d.hit = now, false
	t.dueAt(slot, now+t.patience(d))
	t.stats.Rounds++

	round := t.round(slot, d.asked)
	if t.config.Turns {
		t.drawTurns(d, before, round)
	} else {
		t.draw(round, d.paths)
	}
	for i := range round {
		round[i].token = newToken(t.random, slot, i)
		t.stats.Probes++
		send(Probe{Destination: d.id, Host: d.target, Path: int(round[i].path), Token: round[i].token})
	}
}

// draw makes the round one of as many paths, each as likely and in random order
// (R. Floyd's algorithm, then a shuffle).
func (t *Table) draw(round []sample, paths []int) {
	n := len(paths) - len(round)
	for i := range round {
		k := below(t.random, n+i+1)
		for j := range i {
			if int(round[j].path) == paths[k] {
				k = n + i
				break
			}
		}
		round[i] = sample{path: int32(paths[k]), live: true}
	}
	for i := len(round) - 1; i > 0; i-- {
		j := below(t.random, i+1)
		round[i].path, round[j].path = round[j].path, round[i].path
	}
}
