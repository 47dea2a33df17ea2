package liveness

import "time"

// gate says whether the carrier is used towards a rack, or all racks of a kind. It closes
// at once when proof is missing. The first time it opens at once. Later it opens only
// after proof has been there for a hold, which doubles with every closing. The zero value
// is closed.
type gate struct {
	open  bool
	ever  bool          // it has been open
	since time.Duration // when it became what it is
	good  time.Duration // since when there is proof again; below 0: there is none
	hold  time.Duration // for how long there has to be
	again uint8         // times that it has closed, for which hold gets longer
	why   string
}

// move takes note of whether there is proof.
func (w *Watcher) move(g *gate, proved bool, why func() string) {
	switch {
	case proved == g.open:
		g.good = -1
		if !g.open && !g.ever { // more is known of why with time
			g.why = why()
		}
		return
	case g.open:
		if w.now-g.since > forgetIdle {
			g.again = 0
		}
		g.hold = reuse * w.config.MinHold
		for range g.again {
			g.hold = min(2*g.hold, max(w.config.MaxHold, g.hold))
		}
		g.hold = w.jitter(g.hold)
		g.again = min(g.again+1, 20)
		g.open, g.since, g.good, g.why = false, w.now, -1, why()
		w.stats.GivenUp++
		return
	case g.ever && g.good < 0:
		g.good = w.now
	}
	if g.ever && w.now-g.good < g.hold {
		w.lookAgain(g.good + g.hold)
		return
	}
	g.open, g.ever, g.since, g.good, g.why = true, true, w.now, -1, ""
	w.stats.TakenUp++
}

// reuse is how many times Config.MinHold there must have been proof until the carrier
// is used again, the first time.
const reuse = 10
