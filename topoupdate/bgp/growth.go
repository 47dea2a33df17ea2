package bgp

import "time"

// GrowAfter is how long what is new in a fabric is held back, since news come in bursts. If
// more is new soon after, that is held back twice as long, up to GrowMost. After so long a
// quiet time it is as at first.
const (
	GrowAfter = time.Second
	GrowMost  = time.Minute
)

// Growth is what is new in a fabric, and held back. The zero value is that nothing is.
type Growth struct {
	to   Views
	due  time.Time
	last time.Time     // when something was taken the last time
	hold time.Duration // how long it was held back then
}

// Hear takes what to go by later, and whether that is more than the host goes by. How often
// it is called does not put off when it is due.
func (g *Growth) Hear(now time.Time, to Views, grown bool) {
	if !grown {
		g.to, g.due = Views{}, time.Time{}
	} else if g.to = to; g.due.IsZero() {
		g.due = now.Add(g.Hold(now))
	}
}

// Hold is how long what is new now is held back.
func (g *Growth) Hold(now time.Time) time.Duration {
	if g.hold == 0 || now.Sub(g.last) > GrowMost {
		return GrowAfter
	}
	return min(2*g.hold, GrowMost)
}

// Due is when Take has something; the zero Time: nothing is held back.
func (g *Growth) Due() time.Time { return g.due }

// Take returns what to go by from now on, when it is due.
func (g *Growth) Take(now time.Time) (to Views, ok bool) {
	if g.due.IsZero() || now.Before(g.due) {
		return Views{}, false
	}
	to = g.to
	*g = Growth{last: now, hold: g.Hold(now)}
	return to, true
}
