package overview

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// View says how a switch does. before is an earlier status, elapsed before this one, for what
// happens in between; nil for none.
func (s *Switch) View(before *Switch, elapsed time.Duration) View {
	if before == nil || !since(elapsed, s.Process, before.Process) {
		before = nil
	}
	v := View{Who: "switch " + s.Switch, About: s.about(), Problems: s.problems(before), Tables: []Table{s.portTable(before, elapsed)}}
	n, first := faults(v.Problems)
	switch {
	case s.Error != "":
		v.Verdict, v.Why = VerdictEnded, first
	case n > 1:
		v.Verdict, v.Why = VerdictDegraded, fmt.Sprintf("%d faults: %s", n, first)
	case n == 1:
		v.Verdict, v.Why = VerdictDegraded, first
	default:
		v.Verdict, v.Why = VerdictWell, "all of "+count(len(s.Neighbours), "port", "ports")+" up"
	}
	return v
}

func (s *Switch) about() string {
	words := []string{s.Topology}
	switch {
	case s.Classifier != nil && s.BalanceError == "":
		words = append(words, "balance "+s.Classifier.Rule)
	case s.Balance != nil && s.BalanceError == "":
		words = append(words, "balance "+s.Balance.Rule)
	}
	words = append(words, s.Scheduler.about()...)
	if c := s.Decap; c != nil {
		words = append(words, fmt.Sprintf("%d packets decapsulated", c.Decapsulated))
	}
	if c := s.Labels; c != nil {
		words = append(words, fmt.Sprintf("%d forwarded by labels", c.Popped))
	}
	words = append(words, count(len(s.Database), "switch", "switches")+" known")
	return strings.Join(append(words, "up "+age(s.Uptime)), ", ")
}

// problems lists what is wrong, the gravest first.
func (s *Switch) problems(before *Switch) (all []Problem) {
	fault := func(do, format string, args ...any) {
		all = append(all, Problem{What: fmt.Sprintf(format, args...), Do: do})
	}
	if s.Error != "" {
		fault("restart it: systemctl restart weft-switch", "the agent has ended: %s", s.Error)
	}
	if r := s.Repairs; r != nil && r.Trouble != "" {
		fault("", "%s", r.Trouble)
	}
	if s.Routes != nil && s.Routes.LastError != "" && (s.Repairs == nil || s.Repairs.Trouble == "") {
		fault("see the log: journalctl -u weft-switch", "routes: %s", s.Routes.LastError)
	}
	own := make(map[string]bool) // links that a port says is down
	for _, n := range s.Neighbours {
		switch n.State {
		case "down":
			fault(doPort(n), "port %s to %s is down for %s: %s", n.Port, n.Name, age(n.Since), n.Why)
		case "held":
			fault("wait; if it comes again, the link flaps: look at the cable and the optics", "port %s to %s works again and is held down for %s more", n.Port, n.Name, age(n.Held))
		}
		own[s.Switch+"-"+n.Name], own[n.Name+"-"+s.Switch] = n.State != "up", n.State != "up"
	}
	var far []string
	for _, l := range s.Down {
		if !own[l] {
			far = append(far, l)
		}
	}
	if len(far) > 0 {
		fault("look there: weft switch status on these switches", "%s down elsewhere", list("link", "links", far))
	}
	for _, n := range s.Neighbours {
		if n.State == "up" && strings.Contains(n.Why, whyStrange) {
			fault(doPort(n), "port %s: %s", n.Port, n.Why)
		}
	}
	for _, e := range []struct{ what, why, do string }{
		{"packets go by plain routes", s.BalanceError, ""},
		{"the meters cannot be read", s.MeterError, ""},
		{"the counters cannot be read", s.CounterError, ""},
		{"senders are told of congestion no more", s.ended(), "restart the agent: systemctl restart weft-switch"},
	} {
		if e.why != "" {
			fault(e.do, "%s: %s", e.what, e.why)
		}
	}
	for _, e := range s.Extensions {
		if e.Error != "" {
			fault("mend the program and restart the agent", "extension %s is left out: %s", e.Extension, e.Error)
		}
	}
	all = append(all, s.Scheduler.problems()...)
	all = append(all, s.refused(before)...)
	if before != nil {
		all = append(all, s.dropped(before)...)
	}
	if !s.Signed {
		all = append(all, Problem{Note: true, What: "updates are not signed: who gets at a cable between switches can say what is down", Do: "weft keygen makes a key"})
	}
	if r := s.Repairs; r != nil && r.Count > 0 && len(r.Last) > 0 {
		all = append(all, Problem{Note: true, What: fmt.Sprintf("%s of others undone, the latest: %s", count(int(r.Count), "change", "changes"), r.Last[len(r.Last)-1])})
	}
	return all
}

func (s *Switch) ended() string {
	if s.Feedback == nil {
		return ""
	}
	return s.Feedback.Ended
}

// doPort is what to do about a port that is down.
func doPort(n Neighbour) string {
	switch {
	case strings.Contains(n.Why, "no carrier"):
		return "look at the cable, and at the port at both ends: ip link show " + n.Port
	case strings.Contains(n.Why, whyStrange):
		return "here and at " + n.Name + ": compare node: of weft switch, and the cables (weft topology prints which port is whose)"
	case strings.Contains(n.Why, whySilent), n.Drops > 0:
		return "at " + n.Name + ": does weft switch run, is node: right there, is this the port that it is cabled to?"
	}
	return "at " + n.Name + ": weft switch status"
}

// dropped tells what was dropped between two statuses.
func (s *Switch) dropped(before *Switch) (all []Problem) {
	for _, c := range []struct {
		what     string
		now, was *Outer
	}{{"IP-in-IP", s.Decap, before.Decap}, {"labels' ends", s.Edge, before.Edge}, {"labels", s.Labels, before.Labels}} {
		if c.now == nil || c.was == nil {
			continue
		}
		if n, why := c.now.drops(c.was); n > 0 {
			all = append(all, Problem{What: fmt.Sprintf("%s: %d packets dropped just now (%s)", c.what, n, why), Do: "find the sender: tcpdump -ni any proto 4"})
		}
	}
	return all
}

// refused tells which neighbours' messages are refused: between two statuses, and from the
// start those that explain why a neighbour seems to be silent.
func (s *Switch) refused(before *Switch) (all []Problem) {
	silent := slices.ContainsFunc(s.Neighbours, func(n Neighbour) bool { return !n.Hears && strings.Contains(n.Why, whySilent) })
	for _, name := range slices.Sorted(maps.Keys(s.Rejected)) {
		n, when := s.Rejected[name], "from the start"
		if before != nil && n > before.Rejected[name] {
			n, when = n-before.Rejected[name], "just now"
		} else if !silent || n < fewRefused {
			continue
		}
		all = append(all, Problem{What: fmt.Sprintf("%d messages of neighbours refused %s, by their %s", n, when, name), Do: doRejected(name)})
	}
	return all
}

// fewRefused messages may be refused while neighbours start.
const fewRefused = 10

// whyStrange is in the reason of a port at which another switch speaks (switchd).
const whyStrange = " speaks there"

// whySilent begins the reason of a neighbour of whom nothing was ever believed
// (topoupdate).
const whySilent = "has never spoken"

// doRejected is what to do about messages that are refused.
func doRejected(why string) string {
	switch why {
	case "sender":
		return "a neighbour is another switch than topology says: compare node: and the cables"
	case "mac", "key", "source":
		return "give all switches the same keys: weft keygen"
	}
	return "weft switch status --all"
}

// drops sums what was dropped since, and names the causes.
func (o *Outer) drops(since *Outer) (n uint64, why string) {
	var causes []string
	for _, c := range []struct {
		name     string
		now, was uint64
	}{
		{"spoofed", o.Spoofed, since.Spoofed}, {"forged", o.Forged, since.Forged}, {"nested", o.Nested, since.Nested}, {"ECN", o.ECN, since.ECN},
		{"malformed", o.Malformed, since.Malformed}, {"unknown", o.Unknown, since.Unknown}, {"ended early", o.Ended, since.Ended}, {"expired", o.Expired, since.Expired},
	} {
		if c.now > c.was {
			n += c.now - c.was
			causes = append(causes, fmt.Sprintf("%s %d", c.name, c.now-c.was))
		}
	}
	return n, strings.Join(causes, ", ")
}

// portTable is of the ports.
func (s *Switch) portTable(before *Switch, elapsed time.Duration) Table {
	t := Table{Head: []string{"PORT", "TO", "STATE", "SINCE", "QUEUE", "LOAD", "RATE", "DROPS", "WHY"}, Of: "ports"}
	meter := func(of *Switch, port string) (m Meter, ok bool) {
		i := slices.IndexFunc(of.Meters, func(m Meter) bool { return m.Port == port })
		if i < 0 {
			return m, false
		}
		return of.Meters[i], true
	}
	for _, n := range s.Neighbours {
		queue, load, sent, drops := unknown, unknown, unknown, unknown
		if m, ok := meter(s, n.Port); ok {
			queue, load, drops = size(m.Length), percent(m.Load), fmt.Sprint(m.Drops)
			if before != nil {
				if was, ok := meter(before, n.Port); ok && m.Bytes >= was.Bytes {
					sent = rate(m.Bytes-was.Bytes, elapsed)
				}
			}
		}
		t.Rows = append(t.Rows, Row{Bad: n.State != "up", Cells: []string{n.Port, n.Name, n.State, age(n.Since), queue, load, sent, drops, n.Why}})
	}
	return t
}
