package overview

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// whyUnproved begins why the packets to a rack go plain until its paths are proved.
const whyUnproved = "not proved yet"

// stateAway is the daemon's StateAway.
const stateAway = "out of the way"

// View says how a host does. before is an earlier status, elapsed before this one, for what
// happens in between; nil for none.
func (h *Host) View(before *Host, elapsed time.Duration) View {
	if before == nil || !since(elapsed, h.Process, before.Process) {
		before = nil
	}
	v := View{Who: "host", About: h.about(), Forwards: h.forwards(), Problems: h.problems(before), Tables: []Table{h.pathTable(before, elapsed), h.rackTable()}}
	if h.Address != "" {
		v.Who += " " + h.Address
	}
	v.Verdict, v.Why = h.verdict(v.Problems)
	if p, ok := h.unsent(before); ok && v.Verdict == VerdictPlain {
		v.Why = p.What // which explains why nothing comes home
	}
	return v
}

func (h *Host) tunnels() bool { return h.Encapsulation == "udp" }

// allPlain reports whether no rack is reached by paths.
func (h *Host) allPlain() bool {
	return h.Reach != nil && h.Reach.Racks > 0 && h.Reach.Plain == h.Reach.Racks
}

func (h *Host) verdict(problems []Problem) (verdict, why string) {
	n, first := faults(problems)
	switch {
	case h.State == stateAway:
		return VerdictPlain, "as weft is out of the way"
	case h.allPlain():
		return VerdictPlain, "to all " + count(h.Reach.Racks, "rack", "racks") + reason(h.Racks)
	case n > 1:
		return VerdictDegraded, fmt.Sprintf("%d faults: %s", n, first)
	case n == 1:
		return VerdictDegraded, first
	}
	switch r := h.Reach; {
	case h.tunnels():
		return VerdictSprayed, "to peers by UDP"
	case r == nil:
		return VerdictSprayed, "unproved, as failures.probes is off"
	case r.Racks == 0:
		return VerdictSprayed, "but there is no other rack"
	default:
		return VerdictSprayed, h.reached()
	}
}

// reached says to how many racks packets are sprayed. It has "by all paths" only where that is
// so of all.
func (h *Host) reached() string {
	r := h.Reach
	text := "to " + count(r.Racks, "rack", "racks")
	if r.Plain > 0 {
		how := "plain"
		isPlain := func(o Rack) bool { return o.Plain && !o.unproved() }
		if len(h.Racks) > 0 && !slices.ContainsFunc(h.Racks, isPlain) {
			how = whyUnproved
		}
		text = fmt.Sprintf("to %d of %s, %d %s", r.Racks-r.Plain, count(r.Racks, "rack", "racks"), r.Plain, how)
	}
	switch {
	case r.Limited > 0:
		return text + fmt.Sprintf(", %d not by all paths or in full size", r.Limited)
	case r.Plain > 0:
		return text
	}
	return text + " by all paths"
}

// unproved reports whether packets to a rack go plain for now only.
func (r *Rack) unproved() bool { return strings.HasPrefix(r.Why, whyUnproved) }

// reason is why racks are plain if all have the same reason.
func reason(racks []Rack) string {
	why := ""
	for _, r := range racks {
		if !r.Plain || r.Why == "" || why != "" && r.Why != why {
			return ""
		}
		why = r.Why
	}
	if why == "" {
		return ""
	}
	return ": " + why
}

func (h *Host) about() string {
	words := []string{"mode " + h.Mode}
	if h.ModeWhy != "" {
		words[0] += " (auto)"
	}
	policy := h.Policy
	if h.Unit != "" {
		policy += " (" + h.Unit + ")"
	}
	words = append(words, policy, h.Encapsulation)
	switch {
	case len(h.Uplinks) > 1:
		words = append(words, fmt.Sprintf("%d uplinks", len(h.Uplinks)))
	case h.Uplink != "":
		words = append(words, "by "+h.Uplink)
	}
	if h.Topology != "" {
		words = append(words, h.Topology)
	}
	words = append(words, h.Scheduler.about()...)
	return strings.Join(append(words, "up "+age(float64(h.Uptime))), ", ")
}

// pathTable is of the ways up, or of a tunnel's paths.
func (h *Host) pathTable(before *Host, elapsed time.Duration) Table {
	t := Table{Head: []string{"PATH BY", "STATE", "SHARE", "RTT p50", "p99", "LOSS", "QUEUE", "RATE"}, Of: "paths"}
	all := h.ways()
	var was []way
	if before != nil {
		was = before.ways()
	}
	moved := make([]uint64, len(all)) // between the two, else ever
	bytes := make([]uint64, len(all))
	total, recent := uint64(0), uint64(0)
	for i, w := range all {
		total += w.packets
		if j := slices.IndexFunc(was, func(o way) bool { return o.key() == w.key() }); j >= 0 && w.packets >= was[j].packets && w.bytes >= was[j].bytes {
			moved[i], bytes[i] = w.packets-was[j].packets, w.bytes-was[j].bytes
			recent += moved[i]
		}
	}
	for i, w := range all {
		if recent < leastPackets { // else what was sent in between says it
			moved[i] = w.packets
		}
	}
	sum := total
	if recent >= leastPackets {
		sum = recent
	}
	for i, w := range all {
		share, sent := unknown, unknown
		if sum > 0 {
			share = percent(float64(moved[i]) / float64(sum))
		}
		if before != nil && total > 0 {
			sent = rate(bytes[i], elapsed)
		}
		t.Rows = append(t.Rows, Row{Bad: w.bad(), Cells: []string{w.name(), w.stateText(), share,
			milliseconds(w.p50()), milliseconds(w.p99()), w.lossText(), w.queue, sent}})
	}
	return t
}

// leastPackets is how many packets between two statuses say how paths share them.
const leastPackets = 100

// rackTable is of the racks in use.
func (h *Host) rackTable() Table {
	t := Table{Head: []string{"RACK IN USE", "PREFIX", "PACKETS", "PATHS UP", "RTT", "MOST", "LOSS", "WORST PATH"}, Of: "racks in use"}
	if h.Reach == nil {
		return t
	}
	t.Hidden = h.Reach.Unnamed
	for _, r := range h.Reach.InUse {
		state := "by paths"
		if r.Plain {
			state = "plain"
		}
		worst := "well"
		switch {
		case r.Worst != "":
			worst = r.Worst
			if r.Why != "" {
				worst += ": " + r.Why
			}
		case r.Mute > 0:
			worst = fmt.Sprintf("%d of %s silent", r.Mute, count(r.Hosts, "host", "hosts"))
		}
		t.Rows = append(t.Rows, Row{Bad: r.Plain || r.Up < r.Paths || r.Loss >= badLoss,
			Cells: []string{r.Rack, r.Prefix, state, fmt.Sprintf("%d of %d", r.Up, r.Paths), milliseconds(r.RTT), milliseconds(r.Most), percent(r.Loss), worst}})
	}
	return t
}
