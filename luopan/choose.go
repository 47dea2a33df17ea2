package luopan

import (
	"slices"
	"time"
)

// Choose returns the path of a flowcell, and whether samples decided (Luopan §3.2). Call
// it with a flowcell's first packet. dst is the destination's rack. host is the
// destination's IPv4 address in big-endian order; from now on that host may be probed.
// paths are the live paths, ascending, at most 2³¹-1. Choose never returns another path.
// The Table keeps the slice until the next Choose for the rack and never writes to it.
// The caller must not write to it either, and passes another slice for other paths.
//
// Without paths the result is -1. A single path is taken, and nothing is probed.
//
// Choose allocates nothing for a known rack, unless there are more paths than before.
func (t *Table) Choose(dst, host uint32, paths []int, now time.Duration) (path int, sampled bool) {
	switch len(paths) {
	case 0:
		return -1, false
	case 1:
		return paths[0], false
	}
	now = t.tell(now)
	slot := t.find(dst)
	if slot == nowhere {
		slot = t.add(dst, now)
	}
	d := &t.destinations[slot]
	d.used, d.hit = now, true
	if d.met(host) && d.resting || d.calm {
		t.dueAt(slot, now)
	}
	if len(paths) != len(d.paths) || &paths[0] != &d.paths[0] {
		t.setPaths(slot, paths)
	}
	if s := t.best(slot, now); s != nil {
		path, sampled = int(s.path), true
		if t.config.Turns {
			t.taken(slot, s)
		}
		t.stats.Sampled++
	} else {
		path = t.other(slot, now)
		t.stats.Unsampled++
		d.unsampled++
	}
	if path < len(d.choices) {
		d.choices[path]++
	} else {
		d.otherChoices++
	}
	return path, sampled
}

// met takes note of a host of the rack, and reports whether it is new.
func (d *destination) met(host uint32) bool {
	if slices.Contains(d.hosts[:d.nHosts], host) {
		return false
	}
	d.hosts[d.meet], d.known[d.meet] = host, false
	d.meet = (d.meet + 1) % maxHosts
	d.nHosts = min(d.nHosts+1, maxHosts)
	return true
}

// knows reports whether a host has answered, as far as it is remembered.
func (d *destination) knows(host uint32) bool {
	i := slices.Index(d.hosts[:d.nHosts], host)
	return i >= 0 && d.known[i]
}

func (t *Table) setPaths(slot int32, paths []int) {
	d := &t.destinations[slot]
	d.paths = paths
	if !t.config.SamplesOnly {
		d.turnOf = below(t.random, len(paths))
	}
	if t.config.Turns {
		d.stride = stride(len(paths))
	}
	for which := range uint8(2) {
		round := t.round(slot, which)
		for i := range round {
			_, round[i].live = slices.BinarySearch(paths, int(round[i].path))
		}
	}
	t.average(slot)
	if n := min(paths[len(paths)-1]+1, maxChoices); n > len(d.choices) {
		d.choices = append(make([]uint64, 0, n), d.choices...)[:n]
	}
}

// best returns the sample that the next flowcell goes by, nil if there is none.
func (t *Table) best(slot int32, now time.Duration) *sample {
	switch {
	case t.config.SamplesOnly:
		return t.least(slot, now)
	case t.config.Turns:
		return t.ready(slot, now)
	}
	return t.fill(slot, now)
}

// other returns the path of a flowcell that no sample decides on.
func (t *Table) other(slot int32, now time.Duration) int {
	switch {
	case t.config.SamplesOnly:
		return t.anyPath(&t.destinations[slot], now)
	case t.config.Turns:
		return t.nextTurn(slot, now)
	}
	return t.inTurn(slot, now)
}

// Best returns the path that the next flowcell to a rack would take, and the time until
// which that holds if no answers come in and no bytes are sent. ok is false if no sample
// decides. Best does not count as a choice. A caller that carries out its choices
// elsewhere calls Choose now and then, so that the rack is not forgotten.
func (t *Table) Best(dst uint32, now time.Duration) (path int, until time.Duration, ok bool) {
	now = t.tell(now)
	slot := t.find(dst)
	if slot == nowhere {
		return -1, 0, false
	}
	s := t.best(slot, now)
	if s == nil {
		return -1, 0, false
	}
	return int(s.path), t.destinations[slot].until, true
}

// Sent adds bytes that were sent to a rack by a path. They count as congestion until
// newer samples replace them. Unknown racks and paths are ignored.
func (t *Table) Sent(dst uint32, path, bytes int) {
	slot := t.find(dst)
	if slot == nowhere || bytes <= 0 {
		return
	}
	d := &t.destinations[slot]
	d.volume += int64(bytes)
	if d.answers[d.shown] == 0 {
		return
	}
	to := &d.loose
	round := t.round(slot, d.shown)
	for i := range round {
		if s := &round[i]; int(s.path) == path {
			to = &s.own
			break
		}
	}
	*to += int64(bytes)
	t.carried(slot, path)
	d.sent += int64(bytes)
	t.hurry(slot)
}
