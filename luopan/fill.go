package luopan

import "time"

// fill returns the sample in use whose path the next flowcell takes, nil if an unsampled
// path is less full than all of them. See the package. Among equal samples it is the less
// congested, then the first; they stand in random order.
func (t *Table) fill(slot int32, now time.Duration) *sample {
	d := &t.destinations[slot]
	if now >= d.until {
		return nil
	}
	var best *sample
	var least int64
	others, loose := int64(len(d.paths)), d.loose
	round := t.round(slot, d.shown)
	for i := range round {
		s := &round[i]
		switch {
		case !s.live:
			continue
		case !s.answered:
			loose += s.own
			continue
		}
		others--
		level := d.filled(s)
		if best == nil || level < least || level == least && s.rank < best.rank {
			best, least = s, level
		}
	}
	if best == nil || others > 0 && least > loose/others {
		return nil
	}
	return best
}

// filled is how far a sample's path is filled, in bytes.
func (d *destination) filled(s *sample) int64 {
	return int64(d.share*float64(s.rank-d.typical)) + s.own
}

// least returns the least congested of the samples in use, nil if there is none
// (Luopan §3.2). Among equals it is the first.
func (t *Table) least(slot int32, now time.Duration) (best *sample) {
	d := &t.destinations[slot]
	if now >= d.until {
		return nil
	}
	round := t.round(slot, d.shown)
	for i := range round {
		if s := &round[i]; s.answered && s.live && (best == nil || s.rank < best.rank) {
			best = s
		}
	}
	return best
}

// inTurn returns the next path of which nothing is known, not one to be shunned if
// there are others. It passes over no more than are sampled or shunned.
func (t *Table) inTurn(slot int32, now time.Duration) int {
	d := &t.destinations[slot]
	fallback := -1
	for range d.paths {
		path := d.paths[d.turnOf%len(d.paths)]
		d.turnOf = (d.turnOf + 1) % len(d.paths)
		switch {
		case t.knows(slot, path, now):
			continue
		case !d.shuns(path, now):
			return path
		case fallback < 0:
			fallback = path
		}
	}
	return fallback
}

// knows reports whether a path is a sample in use.
func (t *Table) knows(slot int32, path int, now time.Duration) bool {
	d := &t.destinations[slot]
	if now >= d.until {
		return false
	}
	round := t.round(slot, d.shown)
	for i := range round {
		if s := &round[i]; int(s.path) == path {
			return s.answered
		}
	}
	return false
}

// gauge sets, as a round begins, which share this host is to mend of what its samples
// show, by what it has sent since the last one began. See the package.
func (t *Table) gauge(d *destination, now time.Duration) {
	if took := now - d.began; d.n[d.asked] > 0 && took > 0 {
		rate := float64(d.volume) / took.Seconds()
		if d.rate == 0 {
			d.rate = rate
		}
		d.rate += (rate - d.rate) / 4
		d.share = min(1, d.rate/(float64(t.config.Samples)*t.config.RateBits/8))
	}
	d.volume = 0
}
