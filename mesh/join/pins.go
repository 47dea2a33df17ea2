package join

import (
	"maps"
	"time"

	"weft/mesh"
)

// looksAtPins is how often Pins are loaded while a registration does not count.
const looksAtPins = 5 * time.Second

// keepsPins is how often Pins are given new names at most: whoever registers some all the time does not have
// them written all the time.
const keepsPins = 10 * time.Second

// loadPins takes over whose names are.
func (l *loop) loadPins(c *Config) error {
	own := !c.Identity.IsZero()
	if own { // first: there may be no room behind the others
		l.view.Pin(c.Name, c.Identity.Public())
	}
	if c.Pins == nil {
		return nil
	}
	all, err := c.Pins.Load()
	if err != nil {
		return err
	}
	for name, whose := range all {
		if !own || name != c.Name {
			l.view.Pin(name, whose)
		}
	}
	return nil
}

// keepFresh keeps new pins, if it is time to, or the last time. It reports whether all are kept.
func (l *loop) keepFresh(last bool) bool {
	fresh := l.view.TakePinned()
	if l.c.Pins == nil {
		return true
	}
	if len(fresh) > 0 {
		if l.unkeptPins == nil {
			l.unkeptPins = make(map[string]mesh.PublicIdentity)
		}
		maps.Copy(l.unkeptPins, fresh)
	}
	if len(l.unkeptPins) == 0 {
		return true
	}
	if !last && !l.pinsKept.IsZero() && time.Since(l.pinsKept) < keepsPins {
		return false
	}
	err := l.c.Pins.Keep(l.unkeptPins)
	if l.troublePins(err); err != nil {
		return false // again with the next tick
	}
	l.unkeptPins, l.pinsKept = nil, time.Now()
	return true
}

// keepPins keeps new pins, and looks whether somebody has removed those of strangers. One that is not kept
// yet must not look as if it had been removed.
func (l *loop) keepPins() {
	if !l.keepFresh(false) || l.c.Pins == nil {
		return
	}
	if l.view.Strangers() == 0 || time.Since(l.pinsLooked) < looksAtPins {
		return
	}
	l.pinsLooked = time.Now()
	all, err := l.c.Pins.Load()
	if l.troublePins(err); err != nil {
		return
	}
	pins := maps.Clone(all)
	if own := l.c.Identity; !own.IsZero() { // it is this host's, whatever the file says
		if pins == nil {
			pins = make(map[string]mesh.PublicIdentity)
		}
		pins[l.c.Name] = own.Public()
	}
	if l.view.Repin(pins) {
		l.stale = true
	}
}

// troublePins tells why pins are not kept.
func (l *loop) troublePins(err error) {
	why := ""
	if err != nil {
		why = "who has which name is not kept: " + err.Error()
	}
	if why == l.unpinned {
		return
	}
	l.update(func(s *Status) {
		if s.Why == "" || s.Why == l.unpinned {
			s.Why = why
		}
	})
	if l.unpinned = why; err != nil {
		l.log.Warn("identities not kept", "why", err)
	}
}
