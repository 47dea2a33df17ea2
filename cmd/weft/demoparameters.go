package main

import (
	"fmt"
	"slices"
	"time"

	"weft/bench/papers/drb"
	"weft/bench/report"
	"weft/bench/testbed"
)

// describe says in words what a row was in this run.
func (d *demo) describe(r testbed.Row) string {
	c := d.testbed()
	return c.Describe(r)
}

// parameters are the run's, as its hosts and links had them.
func (d *demo) parameters() (all []report.Fact) {
	c := d.testbed()
	add := func(name, format string, args ...any) {
		all = append(all, report.Fact{Name: name, Value: fmt.Sprintf(format, args...)})
	}
	if c.Graph != nil { // the report says it of others, of which it has a picture
		add("Topology", "%v", d.topology)
	}
	if o := d.options; o.permutations == 1 {
		add("Measured", "%v after %v", o.duration, o.warmup)
	} else {
		add("Measured", "%d permutations, %v each after %v; medians", o.permutations, o.duration, o.warmup)
	}
	add("Load", "%s, small requests beside each", d.load())
	add("Flowcells", "%s bytes", thousands(c.Policy.FlowcellBytes))
	add("Flowlets", "end with pauses of %v", c.Policy.FlowletGap.Round(time.Microsecond))
	add("Resequencer", "%v, holds for %v to %v", c.Resequencer.Discipline, c.Resequencer.MinHold.Round(time.Microsecond), c.Resequencer.Hold.Round(time.Microsecond))
	add("Encapsulation", "%v, %d bytes a packet", c.Carrier, c.Carrier.Overhead())
	if c.Meter != nil {
		add("Switches", "measure their queues")
	}
	return all
}

// thousands groups digits by threes.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// paperOf are the rows of which DRB's Fig. 6a has a policy, by the policy.
var paperOf = map[string]string{"kernel-ecmp": "ecmp", "ecmp": "ecmp", "rb": "rb", "rrb": "rrb", "drb": "drb", "kernel-drb": "drb"}

// published is what DRB's Fig. 6a has of a row, in percent of its links' rate; nil: nothing.
func (d *demo) published(r testbed.Row) *float64 {
	p := drb.Figure6a()
	mbit, ok := p.Mbit[paperOf[r.Name]]
	if !ok || d.options.matrix != nil { // the paper's are of a permutation
		return nil
	}
	percent := 100 * mbit / p.LinkMbit
	return &percent
}

// paperNote says what the paper's points are of, if there are some.
func (d *demo) paperNote(rows []report.Row) string {
	if !slices.ContainsFunc(rows, func(r report.Row) bool { return r.Paper != nil }) {
		return ""
	}
	p := drb.Figure6a()
	return fmt.Sprintf("The paper’s points are %s: %s, goodput in percent of a link’s rate. Its fabric is larger than most that fit here.", p.Source, p.Setting)
}
