package overview

import (
	"fmt"
	"slices"
	"strings"
)

// unsent tells that this host's own kernel does not let probes out, and so no packet with an
// outer header either: most of them between two statuses. Fewer are lost where a queue is full.
// Where something else is wrong with the uplink, that is why.
func (h *Host) unsent(before *Host) (p Problem, ok bool) {
	if before == nil || h.Failures == nil || before.Failures == nil || h.Failures.Probes == nil || before.Failures.Probes == nil {
		return p, false
	}
	if h.Trouble != "" || slices.ContainsFunc(h.Uplinks, func(u Uplink) bool { return !u.Up }) {
		return p, false
	}
	now, was := h.Failures.Probes, before.Failures.Probes
	if now.Denied == nil || was.Denied == nil || *now.Denied < *was.Denied || now.Watcher.Sent < was.Watcher.Sent {
		return p, false
	}
	const few = 10
	lost, sent := *now.Denied-*was.Denied, now.Watcher.Sent-was.Watcher.Sent
	if lost < few || 2*lost < sent {
		return p, false
	}
	at := h.Uplink
	if at == "" {
		at = "the uplink"
	}
	p = Problem{What: fmt.Sprintf("this host's own kernel drops %s at %s: %d of %d probes just now", h.carried(), at, lost, max(lost, sent)),
		Do: "nft list ruleset (hooks egress, output, postrouting), tc filter show dev " + at + " egress, bpftool net"}
	var others []string
	for _, o := range h.Others {
		if strings.Contains(o.Hook, "egress") {
			others = append(others, o.text())
		}
	}
	if others = slices.Compact(others); len(others) > 0 {
		p.What += ", where another's " + and(others) + " runs"
	}
	return p, true
}

// carried is what a host sends, by the carrier in use.
func (h *Host) carried() string {
	switch {
	case h.Encapsulation == "ipip" && strings.Contains(h.Address, ":"):
		return "what leaves with an outer header (protocol 41)"
	case h.Encapsulation == "ipip":
		return "what leaves with an outer header (protocol 4)"
	case h.Encapsulation == "srv6":
		return "what leaves with an outer header (SRv6, IPv6's routing header)"
	}
	return "weft's probes (UDP 9339)"
}

// muteProblems tells which hosts that answered probes before do so no more. It leaves out
// those of racks to which packets go plain for that.
func (h *Host) muteProblems() (all []Problem) {
	if h.Failures == nil {
		return nil
	}
	var names []string
	why := ""
	for _, p := range h.Failures.Paths {
		if p.State != "mute" || p.Bounce != "" || p.Why == "" || slices.Contains(names, p.To) {
			continue
		}
		if names = append(names, p.To); why == "" {
			why = p.Why
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []Problem{{What: fmt.Sprintf("%s: %s", list("host", "hosts", names), why), Do: "there: does weft host run (weft status), is the host up, does a firewall drop UDP 9339?"}}
}

// lateProblems tells where packets take longer than elsewhere. That may be how the fabric is
// built, so it is a note.
func (h *Host) lateProblems() []Problem {
	if h.Failures == nil || h.Failures.Late == nil {
		return nil
	}
	l := h.Failures.Late
	b := Blame{Places: l.Places, Kinds: l.Kinds}
	where := b.where()
	if where == "" {
		where = "the ways"
	}
	by := and(l.By)
	if n := len(l.By) + l.Unsaid; n > 4 {
		by = fmt.Sprintf("%s (%d switches)", by, n)
	}
	return []Problem{{Note: true, Do: "a longer cable, a detour, or a device on the way that holds packets: look there",
		What: fmt.Sprintf("%s is late: packets by %s take at least %s there and back, by others %s", where, by, milliseconds(l.Took), milliseconds(l.Others))}}
}
