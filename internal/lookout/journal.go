package lookout

import (
	"cmp"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"

	"weft/internal/event"
	"weft/internal/eventlog"
	"weft/liveness"
	"weft/topology"
)

// Journal says to a log what changes, each change once. A nil *Journal says nothing. It is
// safe for concurrent use. It is to be called without locks that packets need.
type Journal struct {
	log     *eventlog.Log
	carrier string
	longest int  // inner packet, in bytes
	paths   bool // it tells of paths alone

	mu       sync.Mutex
	topology *topology.Topology // that switches, or whoever else calls SetTopology, told of
	carriage *liveness.Carriage
	suspects map[suspect]string // why
	untold   string             // why the device does not know the paths in use
}

// suspect is what a host has found out to be bad: a link, or one path to a destination.
type suspect struct {
	link topology.LinkID
	dst  netip.Addr
	path int
	held bool // in use all the same
}

// maxLogged is the most links that are named for one change.
const maxLogged = 16

// NewJournal returns one for a log; nil if that is nil. t is the fabric at the beginning,
// nil if there is none. carrier names what packets are carried by. longest is what an inner packet may have by the carrier, in bytes.
func NewJournal(log *slog.Logger, t *topology.Topology, carrier string, longest int) *Journal {
	if log == nil {
		return nil
	}
	return &Journal{log: eventlog.New(log, nil), carrier: carrier, longest: longest, topology: t}
}

// NewPathJournal returns one that tells of links and paths alone, for a daemon that tells of
// racks itself.
func NewPathJournal(log *eventlog.Log) *Journal { return &Journal{log: log, paths: true} }

// Told takes the topology that the host was given.
func (j *Journal) Told(t *topology.Topology) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	was := j.topology
	j.topology = t
	if !SayLinks(j.log, was, t) {
		j.log.Info(event.Topology, "another fabric", "topology", t.String())
		j.suspects, j.carriage = nil, nil
	}
}

// Found takes what the host has found out alone.
func (j *Journal) Found(t *topology.Topology, suspects []liveness.Suspect, c *liveness.Carriage) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.suspected(t, suspects)
	if c != j.carriage && c != nil && !j.paths {
		for _, change := range c.Changes(j.carriage) {
			SayRacks(j.log, &change, t, j.carrier, j.longest)
		}
		j.carriage = c
	}
}

// suspected tells which links and paths are avoided from now on, and which are no more.
func (j *Journal) suspected(t *topology.Topology, suspects []liveness.Suspect) {
	now, logged := make(map[suspect]string, len(suspects)), 0
	for _, s := range suspects {
		k := suspect{s.Link, s.Dst, s.Path, s.Held}
		now[k] = s.Why
		if _, known := j.suspects[k]; known {
			continue
		}
		if logged++; logged > maxLogged {
			continue
		}
		what := "link avoided"
		switch {
		case s.Held:
			what = "link suspected, but too few others are left"
		case s.Path >= 0:
			what = "path avoided"
		}
		j.log.Warn(event.PathDown, what, append(k.attributes(t), "why", s.Why)...)
	}
	if logged > maxLogged {
		j.log.Warn(event.PathDown, "more links avoided", "count", logged-maxLogged)
	}
	logged = 0
	for _, k := range slices.SortedFunc(maps.Keys(j.suspects), suspect.compare) {
		if _, still := now[k]; still || now[suspect{k.link, k.dst, k.path, !k.held}] != "" {
			continue
		}
		if logged++; logged > maxLogged {
			continue
		}
		what := "link used again"
		if k.path >= 0 {
			what = "path used again"
		}
		j.log.Info(event.PathUp, what, k.attributes(t)...)
	}
	if logged > maxLogged {
		j.log.Info(event.PathUp, "more links used again", "count", logged-maxLogged)
	}
	j.suspects = now
}

func (s suspect) compare(o suspect) int {
	return cmp.Or(cmp.Compare(s.link, o.link), s.dst.Compare(o.dst), cmp.Compare(s.path, o.path))
}

// attributes name a suspect.
func (s suspect) attributes(t *topology.Topology) []any {
	a := []any{"link", t.LinkName(s.link)}
	if s.path >= 0 {
		a = append(a, "to", t.HostName(s.dst), "path", s.path)
	}
	return a
}

// Device takes what a device that chooses paths has said to the paths in use.
func (j *Journal) Device(err error) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	why := ""
	if err != nil {
		why = err.Error()
	}
	switch {
	case why == j.untold:
	case why != "":
		j.log.Warn(event.Device, "the device does not take the paths in use, and is told again", "why", why)
	default:
		j.log.Info(event.Device, "the device has taken the paths in use")
	}
	j.untold = why
}

// Flush tells what was suppressed, if it is some time ago. A Lookout calls it now and then.
func (j *Journal) Flush() {
	if j != nil {
		j.log.Flush()
	}
}

// Failed takes why the host reads no more.
func (j *Journal) Failed(err error) {
	if j != nil {
		j.log.Say(slog.LevelError, event.Device, "device failed, all connections end", "why", err)
	}
}
