package lookout

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"weft/internal/event"
	"weft/internal/eventlog"
	"weft/liveness"
	"weft/topology"
)

// PathLog tells of links and paths that go out of use and come back, each change once, whichever
// of a host's carriers find it out: a carrier has a Journal of its own, and a link that is
// dead is so for all of them. An event names the carrier that found it first, or last. Links are told
// apart by their names, as families see the fabric with numbers of their own. Its methods are
// safe for concurrent use.
type PathLog struct {
	log *eventlog.Log

	mu     sync.Mutex
	accuse map[place]map[string]accusation // by carrier
}

// place is what a carrier may accuse: a link, or one path to a host.
type place struct {
	link string
	to   string // "" of a link
	path int    // -1 of a link
}

// accusation is what a carrier says of a place.
type accusation struct {
	why  string
	held bool // in use all the same
}

// NewPathLog returns one for a log.
func NewPathLog(log *eventlog.Log) *PathLog {
	return &PathLog{log: log, accuse: make(map[place]map[string]accusation)}
}

// Journal returns one that tells of links and paths by a carrier alone, for a daemon that tells
// of racks itself.
func (p *PathLog) Journal(carrier string) *Journal {
	return &Journal{log: p.log, carrier: carrier, shared: p, paths: true}
}

func placeOf(t *topology.Topology, s *liveness.Suspect) place {
	p := place{link: t.LinkName(s.Link), path: -1}
	if s.Path >= 0 {
		p.to, p.path = t.HostName(s.Dst), s.Path
	}
	return p
}

func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(p.link, o.link), cmp.Compare(p.to, o.to), cmp.Compare(p.path, o.path))
}

// attributes name a place, and who says so.
func (p place) attributes(carrier string) []any {
	a := []any{"link", p.link}
	if p.path >= 0 {
		a = append(a, "to", p.to, "path", p.path)
	}
	return append(a, "carrier", carrier)
}

// use is how a place is used, as far as all carriers know.
type use int

const (
	used    use = iota
	kept        // suspected by some, and in use as too few others are left
	avoided     // out of use by one carrier at least
)

func (p *PathLog) use(at place) use {
	u := used
	for _, a := range p.accuse[at] {
		if a.held {
			u = max(u, kept)
		} else {
			u = avoided
		}
	}
	return u
}

// found takes all that a carrier accuses now, and tells what that changes.
func (p *PathLog) found(carrier string, t *topology.Topology, suspects []liveness.Suspect) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := make(map[place]accusation, len(suspects))
	var order []place
	for i := range suspects {
		s := &suspects[i]
		at := placeOf(t, s)
		if was, twice := now[at]; !twice {
			order = append(order, at)
		} else if !was.held {
			continue
		}
		now[at] = accusation{s.Why, s.Held}
	}
	var gone []place
	for at, by := range p.accuse {
		if _, said := by[carrier]; said {
			if _, still := now[at]; !still {
				gone = append(gone, at)
			}
		}
	}
	slices.SortFunc(gone, place.compare)
	var down, up named
	for _, at := range append(order, gone...) {
		before := p.use(at)
		p.set(carrier, at, now)
		switch after := p.use(at); {
		case after == before:
		case after == used:
			up.say(func() { p.sayUp(at, carrier) })
		default:
			down.say(func() { p.sayDown(at, carrier, after) })
		}
	}
	if n := down.left(); n > 0 {
		p.log.Warn(event.PathDown, "more links avoided", "count", n, "carrier", carrier)
	}
	if n := up.left(); n > 0 {
		p.log.Info(event.PathUp, "more links used again", "count", n, "carrier", carrier)
	}
}

// set takes what a carrier says of a place.
func (p *PathLog) set(carrier string, at place, now map[place]accusation) {
	if a, said := now[at]; said {
		if p.accuse[at] == nil {
			p.accuse[at] = make(map[string]accusation)
		}
		p.accuse[at][carrier] = a
		return
	}
	if delete(p.accuse[at], carrier); len(p.accuse[at]) == 0 {
		delete(p.accuse, at)
	}
}

// sayDown tells that a place is avoided or suspected from now on. A carrier that says nothing of
// it has given way to another that says less.
func (p *PathLog) sayDown(at place, carrier string, now use) {
	by := p.accuse[at]
	a, said := by[carrier]
	if !said {
		carrier = slices.Min(slices.Collect(maps.Keys(by)))
		a = by[carrier]
	}
	what := "link avoided"
	switch {
	case now == kept:
		what = "link suspected, but too few others are left"
	case at.path >= 0:
		what = "path avoided"
	}
	p.log.Warn(event.PathDown, what, append(at.attributes(carrier), "why", a.why)...)
}

func (p *PathLog) sayUp(at place, carrier string) {
	what := "link used again"
	if at.path >= 0 {
		what = "path used again"
	}
	p.log.Info(event.PathUp, what, at.attributes(carrier)...)
}

// forget takes that a carrier says nothing any more: it is not in use, or the fabric is another.
// That is no change of a path, and is not told.
func (p *PathLog) forget(carrier string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at := range p.accuse {
		p.set(carrier, at, nil)
	}
}

// named counts changes of one kind, of which few are named.
type named int

func (n *named) say(f func()) {
	if *n++; *n <= maxLogged {
		f()
	}
}

// left is how many were not named.
func (n named) left() int { return int(max(0, n-maxLogged)) }
