package luopan

import "time"

const (
	// maxSlow is how often expiry may double: a host that has slowed down sees congestion
	// come within 16 round trips.
	maxSlow = 4
	// firstPatience is how long to wait for the first answer, while no round trip is known.
	firstPatience = 10 * time.Millisecond
	// maxPatience is the longest wait for an answer.
	maxPatience = time.Second
	maxSilent   = 63

	calmQueue  = 1                // units: a packet that happens to be there
	fullQueue  = maxQueue * 3 / 4 // units
	queueNoise = 2                // units

	// busy is how many bytes an answer is good for where there is traffic: about a
	// flowcell. More of them on few paths make the congestion that they look for.
	busy = 64 << 10
)

// adapt sets how long the answers of rounds to come are good for, by those of a
// round that is over (Luopan §5). See the package.
func (t *Table) adapt(slot int32) {
	d := &t.destinations[slot]
	kind := d.kind[d.asked]
	low, high := int64(-1), int64(-1)
	marks, answers := 0, 0
	for _, s := range t.round(slot, d.asked) {
		if !s.answered {
			continue
		}
		level := int64(s.rtt)
		if kind == QueueBytes {
			level = int64(s.queue)
		}
		if low < 0 {
			low = level
		}
		low, high = min(low, level), max(high, level)
		answers++
		if s.marked {
			marks++
		}
	}
	var calm bool
	var noise int64
	if kind == QueueBytes {
		calm, d.hopeless = high <= calmQueue, low >= fullQueue
		noise = queueNoise
	} else {
		calm, d.hopeless = marks == 0 && high <= int64(d.least+d.least/2), marks == answers
		noise = int64(grain(d.rtt))
	}
	moved := kind != d.levelKind || max(low-d.level, d.level-low) > noise
	same := high-low <= noise && !moved
	d.level, d.levelKind = low, kind
	if d.hopeless || d.sent < busy && (!d.hit || calm || same) {
		d.slow = min(d.slow+1, maxSlow)
	} else {
		d.slow = 0
	}
}

// hurry brings the next round forward once this host has sent much since the last.
func (t *Table) hurry(slot int32) {
	d := &t.destinations[slot]
	if d.sent < busy || d.slow == 0 || d.hopeless || d.asked != d.shown || t.config.Expiry != 0 {
		return
	}
	d.slow = 0
	if next := d.first + t.expiry(d); next < d.next {
		d.next = next
		d.until = next + max(next-d.first, 2*d.rtt)
		t.dueAt(slot, next)
	}
}

// expiry is how long the answers of a round are good for. A least round trip in place
// of the smoothed one makes for twice as many probes and, measured, no better choices.
func (t *Table) expiry(d *destination) time.Duration {
	if t.config.Expiry != 0 {
		return t.config.Expiry
	}
	return min(max(d.rtt, t.config.MinExpiry)<<d.slow, t.config.MaxExpiry)
}

// patience is how long to wait for the first answer of a round: as long as a retransmission
// timer (RFC 6298 §2), and four round trips at least. It doubles when all known hosts of
// the rack were asked in vain.
func (t *Table) patience(d *destination) time.Duration {
	p := firstPatience
	if d.rtt != 0 {
		p = d.rtt + max(3*d.rtt, 4*d.vary)
	}
	p = max(p, t.config.MinExpiry) << min(d.silent/d.nHosts, 16)
	return min(p, max(maxPatience, t.config.MaxExpiry))
}
