package liveness

import (
	"time"

	"weft/encap"
)

// How long packets may be. If a link has a smaller MTU and its ICMP errors are lost,
// small probes pass and full-size packets vanish. So now and then a probe of a path is
// padded to the longest packet that is believed to pass, with DF set. If it is missed
// though the small probes beside it come home, that length is in doubt. After many such
// misses in a row, a search finds the longest packet that passes. Later, longer packets
// are tried again, more rarely each time they fail. This is the idea of RFC 4821 and RFC
// 8899, with probes that carry no data.

const (
	fullEvery   = 400 * time.Millisecond // between full-size probes of a path in use
	idleFull    = 5 * time.Second        // the same while there is no traffic
	sizeDoubt   = 8                      // full-size probes missed in a row before smaller ones are tried
	sizeTries   = 3                      // of each size that is tried
	firstRaise  = time.Second            // until longer packets are tried again, at first
	lastRaise   = 16 * time.Second       // and at last
	foreignFull = time.Minute            // between tries with peers that do not know padding
)

// sizing is what is known of the longest packet that passes a path: a place in
// Watcher.sizes. The zero value believes in the longest, unproved.
type sizing struct {
	level  uint8 // the longest believed in; as many as there are sizes: none passes
	known  bool  // a padded one has come home
	step   sizeStep
	try    uint8         // what is tried while searching or raising
	failed uint8         // of the search: this and all before fail; one more than the place
	passed uint8         // this and all behind pass
	sent   uint8         // tries on their way
	count  uint8         // missed in a row; while raising, come home
	next   time.Duration // when the next full-size probe is due
	raise  time.Duration // when longer ones are to be tried
	wait   time.Duration // from one time to the next
}

type sizeStep uint8

const (
	calm sizeStep = iota
	doubting
	searching
	raising
)

// fits reports whether anything passes that is worth being used; n is the number of
// sizes.
func (s *sizing) fits(n int) bool { return s.known && int(s.level) < n }

// settled reports whether the longest has been found.
func (s *sizing) settled() bool { return s.known && s.step == calm }

// sendFull sends a full-size probe beside a small one, if it is time to.
func (w *Watcher) sendFull(p *path) {
	s := &p.size
	if w.config.MTU == 0 || w.now < s.next || p.misses > 0 || p.answered < 0 {
		return
	}
	n := uint8(len(w.sizes))
	least := uint8(0) // far halves cannot do better than the way up
	if p.group != &w.near {
		if near := &w.near.paths[p.up].size; near.known {
			least = min(near.level, n-1)
		}
	}
	if s.level < least {
		s.level = least
	}
	if s.step == calm && s.level > least && w.now >= s.raise {
		s.step, s.sent, s.count = raising, 0, 0
		s.try = w.upward(s.level, least)
	}
	at := s.level
	switch s.step {
	case raising:
		s.try = max(s.try, least)
		at = s.try
		if s.sent >= sizeTries {
			return
		}
	case searching:
		if s.try < least {
			s.failed = min(least, s.passed)
			if w.search(p); s.step != searching {
				return
			}
		}
		at = s.try
		if s.sent >= sizeTries {
			return
		}
	case doubting:
		if s.sent >= w.doubts(p) {
			return
		}
	}
	if at >= n { // nothing passes; the shortest may again
		at = n - 1
	}
	if !w.bulk.Take(w.sizes[at], w.now) {
		s.next = w.now + w.config.Interval
		return
	}
	if w.sendSized(p, at) {
		s.sent++
	}
	s.next = w.now + w.config.Interval*3/4
	if s.step == calm {
		s.next = w.now + w.jitter(w.fullEvery(p))
	}
}

// upward returns the next longer size to try: at random the next one or the longest.
func (w *Watcher) upward(level, least uint8) uint8 {
	if w.random(2) == 0 {
		return least
	}
	return level - 1
}

func (w *Watcher) fullEvery(p *path) time.Duration {
	switch g := p.group; {
	case !p.size.known:
		return w.config.Interval
	case g == &w.near && w.now-w.traffic > activeFor:
		return idleFull
	}
	return max(fullEvery, 2*w.config.Interval)
}

// doubts returns how many full-size probes in a row must be missed before smaller ones
// are tried. It is more if small probes get lost, too, and fewer if no full-size probe
// has ever come home.
func (w *Watcher) doubts(p *path) uint8 {
	if !p.size.known {
		return sizeTries
	}
	return uint8(min(max(sizeDoubt, w.needed(p)), 30))
}

// fullHome takes note of a full-size probe that came home.
func (w *Watcher) fullHome(p *path, at uint8) {
	w.stats.FullAnswered++
	s := &p.size
	s.sent -= min(s.sent, 1)
	first := !s.known
	s.known = true
	switch s.step {
	case calm, doubting:
		if at <= s.level {
			w.settleSize(p, at, first)
		}
	case searching:
		if at < s.passed {
			s.passed = at
			w.search(p)
		}
	case raising:
		if at > s.try {
			break
		}
		if s.count++; s.count >= sizeTries {
			w.settleSize(p, at, true)
		}
	}
	if first {
		w.lookAgain(w.now)
	}
}

// fullMissed records a full-size probe that was missed. It counts only if small probes
// that were sent since have come home.
func (w *Watcher) fullMissed(p *path, e *await) {
	w.stats.FullMissed++
	s := &p.size
	s.sent -= min(s.sent, 1)
	if p.misses > 0 || p.answered < e.sent {
		return
	}
	at := e.size - 1
	switch s.step {
	case calm:
		if at == s.level {
			s.step, s.count, s.sent, s.next = doubting, 1, 0, w.now
			w.doubtAlike(p)
		}
	case doubting:
		if at != s.level {
			break
		}
		if s.count++; s.count >= w.doubts(p) {
			s.step, s.failed, s.passed = searching, min(at+1, uint8(len(w.sizes))), uint8(len(w.sizes))
			w.search(p)
		}
	case searching:
		if at != s.try {
			break
		}
		if s.count++; s.count >= sizeTries {
			s.failed = at + 1
			w.search(p)
		}
	case raising:
		s.step = calm
		w.waitToRaise(s)
	}
	if s.step != calm {
		w.wake(p, w.config.Interval)
	}
}

// doubtAlike tests the other paths of a group, too: a fault of one is often a fault of
// all.
func (w *Watcher) doubtAlike(p *path) {
	for i := range p.group.paths {
		if q := &p.group.paths[i]; q.size.step == calm && q.size.known {
			q.size.next = min(q.size.next, w.now)
		}
	}
}

// search goes on with the middle of what is not known, or ends.
func (w *Watcher) search(p *path) {
	s := &p.size
	if s.failed < s.passed {
		s.try = (s.failed + s.passed) / 2
		s.sent, s.count, s.next = 0, 0, w.now
		return
	}
	if int(s.passed) == len(w.sizes) && p.group != &w.near && !w.othersPadded(p) {
		w.forgetSizes(p)
		return
	}
	s.known = true
	w.waitToRaise(s)
	w.settleSize(p, s.passed, true)
}

// othersPadded reports whether padded requests of a destination come home by another path.
// Then the destination knows padding, and those that vanish do so on the far half of p. If
// padded boomerangs do not come home from p's switch either, nothing is known of that half.
func (w *Watcher) othersPadded(p *path) bool {
	n := len(w.sizes)
	passes := func(s *sizing) bool { return s.fits(n) && (s.step != searching || int(s.passed) < n) }
	if !passes(&w.near.paths[p.up].size) {
		return false
	}
	for i := range p.group.paths {
		if q := &p.group.paths[i]; q != p && !q.down && q.cause == fine && passes(&q.size) {
			return true
		}
	}
	return false
}

// forgetSizes has a destination from which no padded request comes home count as one that
// does not know padding, or does not any more. That says nothing of p, whose search has
// ended, nor of paths for which such a search has ended before.
func (w *Watcher) forgetSizes(p *path) {
	for i := range p.group.paths {
		q := &p.group.paths[i]
		if s := &q.size; q == p || s.known && !s.fits(len(w.sizes)) {
			s.known, s.step, s.level = false, calm, 0
			q.mark(false)
			s.next = w.now + foreignFull
		}
	}
	w.lookAgain(w.now)
}

// waitToRaise has longer packets tried later, each time twice as late.
func (w *Watcher) waitToRaise(s *sizing) {
	if w.now-s.raise > forgetIdle {
		s.wait = 0
	}
	s.wait = min(max(2*s.wait, firstRaise), lastRaise)
	s.raise = w.now + w.jitter(s.wait)
}

// mark takes note of whether a path is one of its group's small.
func (p *path) mark(small bool) {
	switch {
	case small && !p.small:
		p.group.small++
	case !small && p.small:
		p.group.small--
	}
	p.small = small
}

// settleSize takes a size for the longest that passes.
func (w *Watcher) settleSize(p *path, level uint8, news bool) {
	s := &p.size
	news = news || level != s.level
	if level < s.level { // what passes now may be the next but one
		s.raise = w.now + w.jitter(firstRaise)
	}
	s.step, s.level, s.sent, s.count = calm, level, 0, 0
	p.mark(level > 0 && (p.group == &w.near || level > w.near.paths[p.up].size.level))
	s.next = w.now + w.jitter(w.fullEvery(p))
	if news {
		w.lookAgain(w.now)
	}
}

// TooBig takes an ICMP "fragmentation needed" or an ICMPv6 "packet too big", the whole
// packet, which it does not keep.
// It believes the error at once if that quotes a full-size probe in flight. Anything else
// is counted and ignored. It allocates nothing.
func (w *Watcher) TooBig(packet []byte, now time.Duration) {
	w.at(now)
	token, mtu, err := encap.ProbeTooBig(packet)
	e := &w.awaited.ring[token&w.awaited.mask]
	if err != nil || token == 0 || e.token != token || e.size == 0 || e.path.group.gone {
		w.stats.Unknown++
		return
	}
	w.stats.TooBig++
	at := e.size
	for int(at) < len(w.sizes)-1 && w.sizes[at]-w.config.overhead() > mtu {
		at++
	}
	if s := &e.path.size; int(at) < len(w.sizes) && (at > s.level || !s.known) {
		s.known = true
		w.waitToRaise(s)
		w.settleSize(e.path, at, true)
		s.next = w.now // whether it is so
	}
}

// sendSized sends a probe that is as long as a place in Watcher.sizes says.
func (w *Watcher) sendSized(p *path, at uint8) bool {
	wait := min(max(2*p.timeout(&w.config), 2*w.config.Interval), maxTimeout)
	i, ok := w.awaited.add(p, w.rng.Uint64(), w.now, w.now+wait)
	if !ok {
		w.stats.Skipped++
		return false
	}
	w.awaited.ring[i].size = at + 1
	w.stats.Full++
	w.queue(p, i, w.sizes[at]-w.config.overhead()-encap.ProbeLenFrom(w.config.Address))
	return true
}
