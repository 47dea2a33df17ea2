package failover

import (
	"time"
)

// episode is what the taps of one kind saw of one failure.
type episode struct {
	hole  *Hole
	since time.Time // just before the failure
	// keptAfter is when those that do not need what failed must still be seen.
	keptAfter time.Time

	packets int       // into the hole, from since on
	last    time.Time // of these; zero if there were none
	kept    map[course]struct{}
}

func newEpisode(h *Hole, since, keptAfter time.Time) *episode {
	return &episode{hole: h, since: since, keptAfter: keptAfter, kept: make(map[course]struct{})}
}

// see counts a packet. They come in any order.
func (e *episode) see(s sighting) {
	if s.at.Before(e.since) {
		return
	}
	if _, ok := e.hole.dead[s.course]; ok {
		e.packets++
		if s.at.After(e.last) {
			e.last = s.at
		}
		return
	}
	if _, ok := e.hole.others[s.course]; ok && s.at.After(e.keptAfter) {
		e.kept[s.course] = struct{}{}
	}
}

// closedAfter is the time to the last packet into the hole, 0 if none went there.
func (e *episode) closedAfter() time.Duration {
	if e.packets == 0 {
		return 0
	}
	return e.last.Sub(e.since)
}
