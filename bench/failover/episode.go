package failover

import (
	"time"

	"weft/topology"
)

// fall is when a link failed: just before and just after the kernel's call that
// took it down. The call waits for other changes of the network, and the link
// works while it waits.
type fall struct{ from, to time.Time }

// episode is what the taps of one kind saw during one failure.
type episode struct {
	hole  *hole
	since time.Time // just before the failure
	falls map[topology.LinkID]fall
	// keptAfter is when pairs that do not need the failed part must still be seen.
	keptAfter time.Time

	packets int           // into the hole, from since on
	last    time.Time     // of these; zero if there were none
	late    time.Duration // the longest from just before a link fell to a packet that needed it
	after   time.Duration // the longest from just after
	kept    map[path]struct{}
	lastOf  map[topology.NodeID]sighting // the last packet of each host into the hole
}

// newEpisode begins one. Links that are not in falls count as fallen at since.
func newEpisode(h *hole, since, keptAfter time.Time, falls map[topology.LinkID]fall) *episode {
	return &episode{hole: h, since: since, falls: falls, keptAfter: keptAfter,
		kept: make(map[path]struct{}), lastOf: make(map[topology.NodeID]sighting)}
}

// see counts a packet. They come in any order.
func (e *episode) see(s sighting) {
	if s.at.Before(e.since) {
		return
	}
	if links, ok := e.hole.dead[s.path]; ok {
		e.fell(s, links)
		return
	}
	if _, ok := e.hole.others[s.path]; ok && s.at.After(e.keptAfter) {
		e.kept[s.path] = struct{}{}
	}
}

// fell counts a packet that needs links which fail, if one of them had begun to.
func (e *episode) fell(s sighting, links []topology.LinkID) {
	f := e.fallOf(links)
	if s.at.Before(f.from) {
		return // a node's links fall one after the other, and this one was still there
	}
	e.packets++
	e.late, e.after = max(e.late, s.at.Sub(f.from)), max(e.after, s.at.Sub(f.to))
	if s.at.After(e.lastOf[s.Src].at) {
		e.lastOf[s.Src] = s
	}
	if s.at.After(e.last) {
		e.last = s.at
	}
}

// fallOf returns the first of several links' falls.
func (e *episode) fallOf(links []topology.LinkID) (first fall) {
	for i, l := range links {
		f, ok := e.falls[l]
		if !ok {
			f = fall{e.since, e.since}
		}
		if i == 0 || f.from.Before(first.from) {
			first = f
		}
	}
	return first
}
