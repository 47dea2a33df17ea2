package overview

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
)

// A path is lossy if it has lost so many packets of the last 10 to 20 s, and so great a share
// of them. One or two are lost where a link fails, and are no reason to look for a fault.
const (
	leastLost = 5
	badLoss   = 0.02
)

// way is a line of the table of paths: a bouncing switch, by one of several uplinks, or a
// path of a tunnel.
type way struct {
	bounce         netip.Addr // not valid in a tunnel
	uplink         string
	path           int // of a tunnel
	probed         *Path
	queue          string
	packets, bytes uint64
}

type wayKey struct {
	bounce netip.Addr
	uplink string
	path   int
}

func (w *way) key() wayKey { return wayKey{w.bounce, w.uplink, w.path} }

// ways joins what probes say of the ways up with what was sent by them.
func (h *Host) ways() (all []way) {
	at := func(k wayKey) *way {
		i := slices.IndexFunc(all, func(w way) bool { return w.key() == k })
		if i < 0 {
			i = len(all)
			all = append(all, way{bounce: k.bounce, uplink: k.uplink, path: k.path, queue: unknown})
		}
		return &all[i]
	}
	if h.Failures != nil {
		for i := range h.Failures.Paths {
			if p := &h.Failures.Paths[i]; p.Bounce != "" {
				at(wayKey{bounce: p.Via, uplink: p.From}).probed = p
			}
		}
	}
	var sent []Sent
	if h.Offload != nil {
		sent = append(sent, h.Offload.Bounces...)
	}
	if h.Dataplane != nil {
		sent = append(sent, h.Dataplane.Paths...)
	}
	for _, s := range sent {
		k := wayKey{bounce: s.Address, uplink: s.Uplink}
		if !k.bounce.IsValid() {
			k.bounce, k.path = s.Bounce, s.Path
		}
		if s.Packets > 0 {
			w := at(k)
			w.packets, w.bytes = w.packets+s.Packets, w.bytes+s.Bytes
		}
	}
	h.addQueues(all)
	slices.SortStableFunc(all, func(a, b way) int {
		return cmp.Or(a.bounce.Compare(b.bounce), cmp.Compare(a.path, b.path), cmp.Compare(a.uplink, b.uplink))
	})
	return all
}

// addQueues adds the longest queue that the policy knows of by each bouncing switch.
func (h *Host) addQueues(all []way) {
	for i := range all {
		longest := -1
		for _, c := range h.Congestion {
			for _, p := range c.Paths {
				if p.Bounce == all[i].bounce && p.Known && p.Meters > 0 {
					longest = max(longest, int(p.Queue))
				}
			}
		}
		if longest >= 0 {
			all[i].queue = fmt.Sprint(longest)
		}
	}
}

func (w *way) name() (name string) {
	switch {
	case w.probed != nil:
		name = w.probed.Bounce
	case w.bounce.IsValid():
		name = w.bounce.String()
	default:
		name = fmt.Sprintf("path %d", w.path)
	}
	if w.uplink != "" {
		name += " from " + w.uplink
	}
	return name
}

func (w *way) bad() bool {
	return w.probed != nil && (w.probed.bad() || w.probed.lossy())
}

// loss is the share of its packets that a path has lost lately; of its latest probes, up to
// 64, where the daemon does not say that.
func (p *Path) loss() float64 {
	switch {
	case p.Lately == nil:
		return p.Loss
	case p.Lately.Sent == 0:
		return 0
	}
	return min(1, float64(p.Lately.Lost)/float64(p.Lately.Sent))
}

// lossy reports whether the path has lost too many packets.
func (p *Path) lossy() bool {
	if p.Lately == nil {
		return p.Loss >= leastLost/64.0
	}
	times := p.Lately.Lost
	if p.Lately.Times != nil {
		times = *p.Lately.Times
	}
	return times >= leastLost && p.loss() >= badLoss
}

// bad reports whether the path is out of use.
func (p *Path) bad() bool { return p.State != "up" && p.State != "suspicious" }

func (w *way) stateText() string {
	if w.probed == nil {
		return unknown
	}
	return w.probed.State
}

func (w *way) lossText() string {
	if w.probed == nil {
		return unknown
	}
	return percent(w.probed.loss())
}

// p50 is the median of the latest round trips, or their mean, in ms; 0 if neither is known.
func (w *way) p50() float64 {
	if w.probed == nil {
		return 0
	}
	return cmp.Or(w.probed.RTT50, w.probed.RTT)
}

func (w *way) p99() float64 {
	if w.probed == nil {
		return 0
	}
	return w.probed.RTT99
}
