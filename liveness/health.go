package liveness

import (
	"net/netip"
	"slices"
	"time"
)

// Stats counts since New.
type Stats struct {
	Sent     uint64 `json:"sent"`     // probes
	Answered uint64 `json:"answered"` // of these, in time
	Missed   uint64 `json:"missed"`   // not answered in time
	Late     uint64 `json:"late"`     // of the missed, those that were answered after all
	Skipped  uint64 `json:"skipped"`  // not sent: the budget did not suffice
	Unknown  uint64 `json:"unknown"`  // answers to no probe that was sent, and packets that are no answers

	Quarantined uint64 `json:"quarantined"` // paths taken out of use
	Readmitted  uint64 `json:"readmitted"`  // paths let back
	Muted       uint64 `json:"muted"`       // destinations that stopped answering, or never answered
	Evicted     uint64 `json:"evicted"`     // destinations forgotten to make room
	Refused     uint64 `json:"refused"`     // calls of Active that found no room

	Destinations int `json:"destinations"` // watched now

	Bytes        uint64 `json:"bytes"`         // of all probes, outer headers included
	Full         uint64 `json:"full"`          // full-size probes, not among Sent
	FullAnswered uint64 `json:"full_answered"` // of these, in time
	FullMissed   uint64 `json:"full_missed"`   // not answered in time
	TooBig       uint64 `json:"too_big"`       // of these, those that an ICMP error reported as too big

	AsData   uint64        `json:"as_data"`    // probes of data's class, not among Sent
	Slow     uint64        `json:"slow"`       // times that a path was found slow
	Unproved uint64        `json:"unproved"`   // times that a bouncing switch lost its proof
	TakenUp  uint64        `json:"taken_up"`   // times that the carrier came into use to a rack, or to all racks of a kind
	GivenUp  uint64        `json:"given_up"`   // times that it went out of use to them
	Stalls   uint64        `json:"stalls"`     // times that this process was not run when something was due; Stalled is their sum
	Stalled  time.Duration `json:"stalled_ns"` // does not count as silence, nor towards timeouts and holds
}

// Stats returns the counters.
func (w *Watcher) Stats() Stats {
	s := w.stats
	s.Destinations = len(w.order)
	return s
}

// Health is the state of a path.
type Health string

// The states.
const (
	Up          Health = "up"
	Suspicious  Health = "suspicious"  // in use, and probed often
	Quarantined Health = "quarantined" // out of use, except for the floor
	Slow        Health = "slow"        // out of use for a while, except for the floor, or on trial after that
	Down        Health = "down"        // link-state updates say so
	Mute        Health = "mute"        // nobody answers, so nothing is known
)

// PathHealth is what is known of one path.
type PathHealth struct {
	Dst   netip.Addr // a host, as in topology.HostAt; Self for a boomerang
	Path  int        // its number for the pair
	Via   netip.Addr // bouncing address
	From  int        // the host\'s uplink that the path begins with (topology.PathSet.From)
	State Health
	Why   string // for Quarantined and Slow: the evidence; for Mute that the host has answered before
	// Since is when it was quarantined, found slow, or let back. Time while this process
	// was not run is left out.
	Since time.Duration
	RTT   time.Duration // smoothed; 0: unknown
	// RTT50 and RTT99 are the median and the 99th percentile of a boomerang's latest round
	// trips, up to 64. They are 0 for other paths.
	RTT50, RTT99 time.Duration
	// RTTLeast is the least of these 64, which a queue that comes and goes does not raise; 0 if
	// there are fewer.
	RTTLeast time.Duration
	Loss     float64 // share of its latest probes, up to 64, that were missed

	Proved bool // packets to the bouncing switch come home
	Full   bool // packets of Config.MTU come home from there, too
	MTU    int  // the longest packet that passes, outer header included, in bytes; 0: not known

	Rack   string // the name of Dst's edge switch; "" for a boomerang
	Lately Lately // what became of its probes and packets
	Tally  *Tally // of a boomerang, the caller's own copy; nil for others
}

func (c cause) String() string {
	return [...]string{"fine", "probes not answered", "many probes not answered", "many packets sent again"}[c]
}

// Paths returns the state of the boomerangs and of the paths to all watched destinations.
// It is for status, not for the hot path: in a large fabric a destination has hundreds of
// paths.
func (w *Watcher) Paths() []PathHealth {
	n := len(w.near.paths)
	for _, g := range w.order {
		n += len(g.paths)
	}
	list := make([]PathHealth, 0, n)
	for i := range w.near.paths {
		list = append(list, w.health(&w.near.paths[i]))
	}
	for _, g := range w.order {
		rack := w.base.Node(g.rack).Name
		for i := range g.paths {
			h := w.health(&g.paths[i])
			h.Rack = rack
			list = append(list, h)
		}
	}
	return list
}

func (w *Watcher) health(p *path) PathHealth {
	h := PathHealth{
		Dst: p.group.dst, Path: int(p.index), Via: w.near.paths[p.up].via, From: int(w.near.paths[p.up].from),
		State: Up, Since: w.clock(p.since), RTT: p.srtt, Lately: p.lately.sum(w.now),
	}
	if p.tally != nil {
		t := *p.tally
		h.Tally = &t
		h.RTT50, h.RTT99 = t.latest.quantiles()
		h.RTTLeast = t.latest.least()
	}
	h.Proved = w.proof.bounces[p.up].proved
	if s := &p.size; s.known && int(s.level) < len(w.sizes) {
		h.MTU, h.Full = w.sizes[s.level], s.level == 0
	}
	if p.recorded > 0 {
		h.Loss = float64(p.missed()) / float64(p.recorded)
	}
	switch {
	case p.down:
		h.State = Down
	case p.cause != fine:
		h.State, h.Why = Quarantined, p.cause.String()
	case p.group.mute:
		h.State, h.Why = Mute, w.whyMute(p.group)
	case p.slow.again > 0:
		h.State, h.Why, h.Since = Slow, p.whySlow(), w.clock(p.slow.moved)
	case p.suspicious(w.now):
		h.State = Suspicious
	}
	return h
}

// Suspects returns the suspected links, those with the best evidence first, and then the
// paths that only their destination accuses.
func (w *Watcher) Suspects() []Suspect {
	w.Topology()
	return slices.Concat(w.suspects, w.alone)
}
