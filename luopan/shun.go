package luopan

import "time"

// maxShunned bounds the paths of a destination that are remembered as bad.
const maxShunned = 8

// shunned is a path that no flowcell takes for a while unless a sample says so: it was
// sampled as bad, or its probe did not come back. Otherwise a link that is slow, or has
// long been full, would get its share of the flowcells on which no sample decides.
type shunned struct {
	until time.Duration
	path  int32
}

// anyPath returns a random path, not one to be shunned if a few draws can help it.
func (t *Table) anyPath(d *destination, now time.Duration) (path int) {
	for range 4 {
		path = d.paths[below(t.random, len(d.paths))]
		if !d.shuns(path, now) {
			break
		}
	}
	return path
}

func (d *destination) shuns(path int, now time.Duration) bool {
	for i := range d.shunned {
		if s := &d.shunned[i]; now < s.until && int(s.path) == path {
			return true
		}
	}
	return false
}

// learn records samples that will not change any more. A bad path stays bad for the time in
// which all paths are sampled twice, unless a sample shows it better. Bad is relative to
// the latest samples of other paths.
func (t *Table) learn(slot int32, now time.Duration) {
	d := &t.destinations[slot]
	rounds := (len(d.paths) + t.config.Samples - 1) / t.config.Samples
	until := now + time.Duration(2*rounds)*(t.expiry(d)+d.rtt)
	round := t.round(slot, d.asked)
	for i := range round {
		s := &round[i]
		place := &d.shunned[0]
		for j := range d.shunned {
			if is := &d.shunned[j]; is.path == s.path && is.until > 0 {
				place = is
				break
			} else if is.until < place.until {
				place = is
			}
		}
		switch {
		case s.rank > 2*d.typical+badQueue*int64(t.config.QueueUnit):
			*place = shunned{until, s.path}
		case place.path == s.path:
			*place = shunned{}
		}
	}
	d.typical += (d.fair - d.typical) / 4
}
