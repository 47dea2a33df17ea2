package overview

import (
	"fmt"
	"slices"
	"strings"
)

// problems lists what is wrong with a host, the gravest first.
func (h *Host) problems(before *Host) (all []Problem) {
	fault := func(do, format string, args ...any) {
		all = append(all, Problem{What: fmt.Sprintf(format, args...), Do: do})
	}
	switch {
	case h.State == stateAway:
		fault(doTrouble(h.Trouble), "weft is out of the way: %s", h.Trouble)
	case h.Trouble != "":
		fault(doTrouble(h.Trouble), "%s", h.Trouble)
	}
	if p, ok := h.unsent(before); ok {
		all = append(all, p)
	}
	for _, u := range h.Uplinks {
		if !u.Up {
			fault("look at the cable, or: ip link set "+u.Device+" up", "uplink %s to %s is down", u.Device, u.Switch)
		}
	}
	for _, p := range []struct {
		name string
		part *Part
	}{{"the program that sprays", h.sprays()}, {"the program at the uplink's ingress", h.Steer}, {"the program that restores order", h.Order}, {"qcn", h.QCN}} {
		if p.part != nil && p.part.Error != "" {
			fault("see the daemon's log: journalctl -u weft-host", "%s: %s", p.name, p.part.Error)
		}
	}
	for _, p := range h.Others {
		if p.Front {
			fault("have it attached behind weft's, or see that it passes packets on (bpftool net)", "another's %s runs in front of weft's at the uplink's %s", p.text(), p.Hook)
		}
	}
	if f := h.Failures; f != nil && f.Updates != nil {
		if f.Updates.Error != "" {
			fault("restart weft host", "the switches are not listened to any more: %s", f.Updates.Error)
		}
		if f.Updates.Refused != "" {
			fault("", "%s", f.Updates.Refused)
		}
		if f.Updates.Silent != "" {
			fault("on this host: nft list ruleset (UDP 9338 comes in); at the next switch: weft switch status", "%s", f.Updates.Silent)
		}
	}
	// What is out of use comes before what loses packets: where a link is down, others carry its
	// packets, too, and may be full for a moment.
	all = append(all, h.placeProblems(func(b *Blame) bool { return b.Why != "" })...)
	all = append(all, h.downProblems()...)
	all = append(all, h.placeProblems(func(b *Blame) bool { return b.Why == "" })...)
	all = append(all, h.rackProblems()...)
	all = append(all, h.muteProblems()...)
	all = append(all, h.pathProblems()...)
	all = append(all, h.behindProblems()...)
	all = append(all, h.lateProblems()...)
	all = append(all, h.learnt()...)
	all = append(all, h.Scheduler.problems()...)
	all = append(all, h.counted(before)...)
	if s := h.Supers; s != nil && s.Bytes < s.Asked {
		all = append(all, Problem{What: fmt.Sprintf("super-segments have at most %d bytes, not %d: %s", s.Bytes, s.Asked, s.Why), Note: true})
	}
	if d := h.Dataplane; h.Order != nil && d != nil && d.Handover.SharePercent != nil && *d.Handover.SharePercent < 100 {
		all = append(all, Problem{What: fmt.Sprintf("weft restores the order of %.0f %% of the flows, chosen by hash: it has no time for the others, which TCP puts in order", *d.Handover.SharePercent), Note: true})
	}
	if h.Repairs > 0 && len(h.Latest) > 0 {
		all = append(all, Problem{Note: true, What: fmt.Sprintf("%s of others handled, the latest: %s", count(int(h.Repairs), "change", "changes"), h.Latest[len(h.Latest)-1])})
	}
	return all
}

// sprays is what the program that sprays says of itself.
func (h *Host) sprays() *Part {
	if h.Offload == nil {
		return nil
	}
	return &h.Offload.Part
}

func (f *Foreign) text() string {
	name := f.Name
	if name == "" {
		name = strings.TrimSpace(f.Kind)
	}
	if f.ID != 0 {
		name = strings.TrimSpace(name + fmt.Sprintf(" (program %d)", f.ID))
	}
	if name == "" {
		return "program"
	}
	return "program " + name
}

// doTrouble is what to do about a daemon's trouble.
func doTrouble(trouble string) string {
	for _, t := range []struct{ sign, do string }{
		{"is down", "look at the cable, or: ip link set DEVICE up"},
		{"has no carrier", "look at the cable, and at the port of the switch"},
		{"has not its address", "ip address add the address again"},
		{"the MTU of", "set the MTU back, or restart weft host to go by the new one"},
		{"what moves packets", "see the daemon's log: journalctl -u weft-host"},
	} {
		if strings.Contains(trouble, t.sign) {
			return t.do
		}
	}
	return "weft tries again each second; see journalctl -u weft-host"
}

// group is racks that have the same fault.
type group struct {
	why   string
	plain bool
	mtu   int
	racks []string
}

// rackProblems tells which racks are not reached as they should be, those of one reason
// together. It leaves out those that placeProblems explains.
func (h *Host) rackProblems() (all []Problem) {
	var groups []group
	for _, r := range h.Racks {
		if h.Failures != nil && h.Failures.explained(&r) {
			continue
		}
		i := slices.IndexFunc(groups, func(g group) bool { return g.why == r.Why && g.plain == r.Plain && (g.plain || g.mtu == r.MTU) })
		if i < 0 {
			i = len(groups)
			groups = append(groups, group{r.Why, r.Plain, r.MTU, nil})
		}
		groups[i].racks = append(groups[i].racks, r.Rack)
	}
	for _, g := range groups {
		p := Problem{Do: doRack(g.why)}
		switch {
		case g.plain && strings.HasPrefix(g.why, whyUnproved):
			p.What, p.Note = fmt.Sprintf("packets to %s go plain for now: %s", names(g.racks), g.why), true
		case g.plain:
			p.What = fmt.Sprintf("packets to %s go plain: %s", names(g.racks), g.why)
		default:
			p.What = fmt.Sprintf("%s not reached by all paths or in full size: %s", isAre(g.racks), g.why)
		}
		all = append(all, p)
	}
	return all
}

// doRack is what to do about racks.
func doRack(why string) string {
	for _, w := range []struct{ sign, do string }{
		{whyUnproved, ""},
		{"link-state updates say", "look at the links that are down"},
		{"smaller MTU", "set the MTU of the links by these switches to that of the others; if it is the same: ip -s link, ethtool -S there"},
		{"boomerang", "at the switches named: weft switch status (decapsulated, dropped), sysctl net.ipv4.conf.all.rp_filter, firewall on protocol 4; weft plan prints what a switch needs"},
		{"no request to", "on these hosts: weft status; in that rack: the edge switch's firewall on UDP 9339"},
	} {
		if strings.Contains(why, w.sign) {
			return w.do
		}
	}
	return ""
}

// names names at most four racks.
func names(racks []string) string { return list("rack", "racks", racks) }

func isAre(racks []string) string {
	if len(racks) == 1 {
		return names(racks) + " is"
	}
	return names(racks) + " are"
}

// list names at most four things.
func list(one, many string, all []string) string {
	const most = 4
	switch n := len(all); {
	case n == 1:
		return one + " " + all[0]
	case n > most:
		return fmt.Sprintf("%d %s (%s, ...)", n, many, strings.Join(all[:most], ", "))
	}
	return many + " " + strings.Join(all, ", ")
}

// downProblems tells which links are down. It leaves out what placeProblems explains.
func (h *Host) downProblems() []Problem {
	f := h.Failures
	if f == nil {
		return nil
	}
	down := slices.DeleteFunc(slices.Clone(f.Down), f.blames)
	if len(down) == 0 {
		return nil
	}
	what := fmt.Sprintf("%s out of use", list("link", "links", down))
	if cut := f.cutOff(down); len(cut) > 0 {
		what += ", or " + list("switch", "switches", cut) + " dead: this host has no other way there"
	}
	return []Problem{{What: what,
		Do: "look at the cable and at both ends: weft switch status there says why; without agents, that is what this host's probes have found"}}
}

// pathProblems tells which paths are out of use. It leaves out what placeProblems explains.
func (h *Host) pathProblems() (all []Problem) {
	f := h.Failures
	if f == nil {
		return nil
	}
	var bad []string
	why := ""
	for _, p := range f.Paths {
		if !p.bad() || p.State == "down" || p.State == "mute" || p.Blamed != "" {
			continue // told by links or places, or nobody answers: it may be a host without weft
		}
		name := p.To + " by " + f.switchAt(&p)
		if p.Bounce != "" {
			name = "by " + p.Bounce
		}
		if bad = append(bad, name); why == "" {
			why = p.State
			if p.Why != "" {
				why += ": " + p.Why
			}
		}
	}
	if len(bad) > 0 {
		all = append(all, Problem{What: fmt.Sprintf("%s out of use (%s)", list("path", "paths", bad), why),
			Do: "traffic avoids it; look for errors and speed at its links: ip -s link, ethtool"})
	}
	var lossy []string
	for _, w := range h.ways() {
		if p := w.probed; p != nil && !p.bad() && p.lossy() && p.Blamed == "" {
			lossy = append(lossy, fmt.Sprintf("%s (%s)", w.name(), percent(p.loss())))
		}
	}
	if len(lossy) > 0 {
		all = append(all, Problem{What: "probes get lost " + list("by", "by", lossy), Do: "look for errors at its links: ip -s link, ethtool -S"})
	}
	if avoided := slices.DeleteFunc(slices.Clone(f.Avoided), f.accused); len(avoided) > 0 && len(bad) == 0 { // else these say the same
		all = append(all, Problem{What: list("path", "paths", avoided) + " avoided, as only that host accuses it", Do: "weft status --all: failures.avoided"})
	}
	return all
}

// learnt tells what is wrong with what switches tell by BGP.
func (h *Host) learnt() (all []Problem) {
	if h.BGP == nil {
		return nil
	}
	var silent []string
	for _, n := range h.BGP.Neighbors {
		if !n.Established {
			silent = append(silent, n.Neighbor.String())
		}
	}
	if len(silent) > 0 {
		all = append(all, Problem{What: list("BGP neighbour", "BGP neighbours", silent) + ": no session", Do: "at the switch: is this host a neighbour, of the right AS and password?"})
	}
	for _, d := range h.BGP.Doubts {
		all = append(all, Problem{What: "BGP: " + d, Note: true})
	}
	return all
}

// counted tells what went wrong with packets between two statuses. Few of them, as where a link
// has just failed, are worth a note.
func (h *Host) counted(before *Host) (all []Problem) {
	if before == nil {
		return nil
	}
	rises := func(now, was uint64, do, what string) {
		if now > was {
			all = append(all, Problem{What: fmt.Sprintf("%d packets just now %s", now-was, what), Do: do, Note: now-was < leastPackets})
		}
	}
	if o, was := h.Offload, before.Offload; o != nil && was != nil {
		rises(o.Unattended, was.Unattended, "is the daemon short of CPU time?", "went plain, as the daemon was late")
		rises(o.NoPath, was.NoPath, "look at the links that are down", "had no live path")
		rises(o.TooLong, was.TooLong, "lower the MTU of the route, or raise that of the uplink", "were too long for the uplink with an outer header")
		rises(o.Broken, was.Broken, "see the kernel's log", "were dropped, as the kernel refused the outer header")
	}
	if d, was := h.Dataplane, before.Dataplane; d != nil && was != nil {
		rises(d.Refused, was.Refused, "see sysctl net.core.netdev_max_backlog and the machine's load", "were not taken back by the kernel")
		rises(d.Tunnel.UnknownPeer, was.Tunnel.UnknownPeer, "see udp.peers at both ends", "came from no known peer")
		rises(d.Tunnel.Forged, was.Tunnel.Forged, "see the keys (key, key_file, key_id) at both ends", "had a wrong MAC")
	}
	return all
}
