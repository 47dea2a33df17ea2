package join

import (
	"maps"
	"time"

	"weft/mesh"
)

// looksAtPins is how often Pins are loaded while a registration does not count.
const looksAtPins = 5 * time.Second

// loadPins takes over whose names are.
func (l *loop) loadPins(c *Config) error {
	l.view.Own(c.Name)
	if c.Pins != nil {
		all, err := c.Pins.Load()
		if err != nil {
			return err
		}
		for name, whose := range all {
			l.view.Pin(name, whose)
		}
	}
	if !c.Identity.IsZero() {
		l.view.Pin(c.Name, c.Identity.Public())
	}
	return nil
}

// keepPins keeps new pins, and looks whether somebody has removed those of strangers.
func (l *loop) keepPins() {
	forgotten, fresh := l.view.TakeForgotten(), l.view.TakePinned()
	if len(forgotten) > 0 {
		l.update(func(s *Status) { s.Forgotten = l.view.Forgotten() })
	}
	if l.c.Pins == nil {
		return
	}
	for _, name := range forgotten {
		delete(l.unkeptPins, name)
	}
	if len(fresh) > 0 {
		if l.unkeptPins == nil {
			l.unkeptPins = make(map[string]mesh.PublicIdentity)
		}
		maps.Copy(l.unkeptPins, fresh)
	}
	l.dropped = append(l.dropped, forgotten...)
	if len(l.unkeptPins) > 0 || len(l.dropped) > 0 {
		if err := l.c.Pins.Keep(l.unkeptPins, l.dropped); err != nil {
			if len(l.dropped) > mesh.MaxPins {
				l.dropped = nil
			}
			l.troublePins(err)
			return
		}
		l.unkeptPins, l.dropped = nil, nil
		l.troublePins(nil)
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
