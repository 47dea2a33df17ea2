package live

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// eventer finds out what has happened between two frames.
type eventer struct {
	fabric      *Fabric
	before, now *Frame
	drops       map[int]time.Time // as Meter has them
	list        []Event
}

// quietFor is how long a link must not have dropped packets for its drops to be news.
const quietFor = 30 * time.Second

// events returns what has happened, at most MaxEvents; first: there is nothing to compare with.
func (e *eventer) events(first bool, marks []Event) []Event {
	e.list = append([]Event{}, marks...)
	if !first {
		e.failures()
		e.links()
		e.suspects()
		e.verdicts()
		if e.before.Trouble != e.now.Trouble && e.now.Trouble != "" {
			e.add(EventTrouble, "", e.now.Trouble)
		}
	}
	return e.list[:min(len(e.list), MaxEvents)]
}

func (e *eventer) add(kind, what, text string) {
	e.list = append(e.list, Event{e.now.At, kind, what, short(text)})
}

func (e *eventer) links() {
	for i := range e.now.Links {
		was, now, name := &e.before.Links[i], &e.now.Links[i], e.fabric.Links[i].Name
		switch {
		case was.State < Silent && now.State == Broken:
			e.add(EventDown, name, name+" is down")
		case was.State == Broken && now.State < Silent:
			e.add(EventUp, name, name+" is up again")
		}
		if n := now.Up.Drops + now.Down.Drops; n > 0 {
			if e.now.At.Sub(e.drops[i]) > quietFor {
				e.add(EventDrops, name, fmt.Sprintf("%s begins to drop packets: %d", name, n))
			}
			e.drops[i] = e.now.At
		}
	}
}

func (e *eventer) failures() {
	for _, f := range e.now.Failures {
		if !slices.Contains(e.before.Failures, f) {
			e.add(EventFail, f.Target, fmt.Sprintf("%s was made to fail (%s)", f.Target, f.Mode))
		}
	}
	for _, f := range e.before.Failures {
		if !slices.ContainsFunc(e.now.Failures, func(g Failure) bool { return g.Target == f.Target }) {
			e.add(EventHeal, f.Target, f.Target+" was healed")
		}
	}
}

// suspects tells of places that a host has begun to blame, or no longer does.
func (e *eventer) suspects() {
	key := func(s Suspect) string { return s.Host + " " + strings.Join(s.Places, " ") }
	in := func(all []Suspect, k string) bool {
		return slices.ContainsFunc(all, func(s Suspect) bool { return key(s) == k })
	}
	for _, s := range e.now.Suspects {
		if !in(e.before.Suspects, key(s)) {
			e.add(EventSuspect, s.first(), fmt.Sprintf("%s suspects %s", s.Host, strings.Join(s.Places, " or ")))
		}
	}
	for _, s := range e.before.Suspects {
		if !in(e.now.Suspects, key(s)) {
			e.add(EventTrusted, s.first(), fmt.Sprintf("%s no longer suspects %s", s.Host, strings.Join(s.Places, " or ")))
		}
	}
}

// first is the first of the places; "" if there is none.
func (s *Suspect) first() string {
	if len(s.Places) == 0 {
		return ""
	}
	return s.Places[0]
}

func (e *eventer) verdicts() {
	for _, h := range e.now.Hosts {
		i := slices.IndexFunc(e.before.Hosts, func(b Host) bool { return b.Name == h.Name })
		if i >= 0 && e.before.Hosts[i].Verdict != h.Verdict {
			e.add(EventVerdict, h.Name, fmt.Sprintf("%s: %s, %s", h.Name, h.Verdict, h.Why))
		}
	}
}
