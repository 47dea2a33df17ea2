package simfile

import (
	"fmt"
	"slices"
	"strings"

	"weft/bench/sim"
	"weft/internal/config"
	"weft/topology"
)

func (f *File) checkQueues(string) error {
	for i, q := range f.Queues {
		key := fmt.Sprintf("queues[%d].", i)
		switch {
		case !(q.RateMbit >= 0 && q.RateMbit <= 1e7):
			return f.wrong(key+"rate_mbit", "%g; write the rate of links in Mbit/s, or leave it out for all others", q.RateMbit)
		case q.Bytes < 1 || q.Bytes > maxQueue:
			return f.wrong(key+"bytes", "%d; write from 1 to %d", q.Bytes, maxQueue)
		case q.MarkBytes < 0 || q.MarkBytes > maxQueue:
			return f.wrong(key+"mark_bytes", "%d; write from 0, for none, to %d", q.MarkBytes, maxQueue)
		case q.MarkBytes > 0 && !f.TCP.DCTCP && !f.TCP.ECN:
			return f.wrong(key+"mark_bytes", "no TCP heeds marks; write dctcp: true or ecn: true under tcp")
		}
		for _, other := range f.Queues[:i] {
			if other.RateMbit == q.RateMbit {
				return f.wrong(key+"rate_mbit", "%g is given twice; remove one", q.RateMbit)
			}
		}
	}
	return nil
}

func (f *File) readResequencer(string) (err error) {
	if f.resequencer, err = f.Resequencer.config(); err != nil {
		key := "resequencer.discipline"
		for field, of := range map[string]string{" Hold ": "hold", " MinHold ": "min_hold"} {
			if strings.Contains(err.Error(), field) {
				key = "resequencer." + of
			}
		}
		return f.wrong(key, "%s", strings.TrimPrefix(err.Error(), "resequencer: "))
	}
	return nil
}

func (f *File) readFailures(string) error {
	if len(f.Failures) > maxFailures {
		return f.wrong("failures", "%d; write at most %d", len(f.Failures), maxFailures)
	}
	if len(f.Failures) > 0 && f.plan.fabric.graph != nil {
		return f.wrong("failures", "the simulator fails no links of a graph; leave them out of the graph, or write a computed topology")
	}
	for i, one := range f.Failures {
		key := fmt.Sprintf("failures[%d].", i)
		end := f.Duration + f.Drain
		switch {
		case one.At < 0 || one.At > end:
			return f.wrong(key+"at", "%v; write from 0s to %v, when the run ends", one.At, end)
		case one.Told < 0 || one.Told > maxTime:
			return f.wrong(key+"told", "%v; write from 0s to %v", one.Told, maxTime)
		case len(one.Links) == 0:
			return f.wrong(key+"links", "missing; write links by their ends, such as [%s]", f.plan.fabric.computed.LinkName(topology.LinkID(f.plan.fabric.hosts())))
		}
		s := sim.Failure{At: one.At, Up: one.Up, Told: one.Told}
		for j, name := range one.Links {
			l, err := f.plan.fabric.computed.LinkByName(name)
			if err != nil {
				return f.wrong(fmt.Sprintf("%slinks[%d]", key, j), "%w", err)
			}
			s.Links = append(s.Links, l.ID)
		}
		f.failures = append(f.failures, s)
	}
	return nil
}

func (f *File) checkPolicies(string) error {
	if len(f.Policies) == 0 {
		return f.wrong("policies", "missing; write those to be compared, such as [ecmp, drb, switch-drill]")
	}
	known := knownPolicies()
	for i, name := range f.Policies {
		key := fmt.Sprintf("policies[%d]", i)
		if !slices.Contains(known, name) {
			return f.wrong(key, "%q is unknown; %s", name, config.DidYouMean(name, known))
		}
		if slices.Index(f.Policies, name) < i {
			return f.wrong(key, "%s is given twice; remove one", name)
		}
	}
	for i := range f.Policies {
		if key, err := f.refused(i); err != nil {
			return f.wrong(key, "%s", withoutPackage(err))
		}
	}
	return nil
}

// withoutPackage is an error's text without the packages that it begins with.
func withoutPackage(err error) string {
	s := err.Error()
	for {
		before, rest, ok := strings.Cut(s, ": ")
		if !ok || !slices.Contains([]string{"sim", "TCP", "tcp", "spray", "policy", "workload", "Resequencer", "resequencer"}, before) {
			return s
		}
		s = rest
	}
}
