package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"weft/bench/failover"
	"weft/bench/report"
	"weft/internal/table"
	"weft/topology"
)

// The last part of the demo is long enough to see the effect, and ends within half a
// minute. weft bench failover measures percentiles.
const (
	demoFailures = 2   // of each kind: a spine, and a link below one
	demoLoad     = 0.5 // of what the fabric carries, so that no queue stands
	demoHello    = 20 * time.Millisecond
	demoOutage   = time.Second
	demoSettle   = 500 * time.Millisecond
)

// demoEpisodes are measured with the same hosts: failures that ports report and silent
// ones, both with agents at the switches, and silent ones without agents.
var demoEpisodes = []struct {
	kinds  []string
	agents bool
}{
	{failover.Kinds, true},
	{[]string{failover.KindSilent}, false},
}

// failSpines makes spines die under load. It comes last and builds a lab of its own, with
// the name of the first one, which is gone. If it fails, the demo goes on.
func (d *demo) failSpines(ctx context.Context) error {
	if d.options.skipFailover {
		return nil
	}
	if err := d.canFailSpines(); err != nil {
		d.note(fmt.Sprintf("The part in which a spine dies is left out: %v.", err))
		return nil
	}
	d.progress.begin("a spine dies")
	d.page.mark("the part in which spines die begins")
	done, total := 0, 0
	for _, e := range demoEpisodes {
		total += len(e.kinds) * demoFailures
	}
	for _, e := range demoEpisodes {
		o := d.failoverOptions()
		o.Kinds, o.Agents = e.kinds, []bool{e.agents}
		o.Progress = func(int, int) { done++; d.progress.set(done, total) }
		results, err := failover.Run(ctx, o)
		d.failover = append(d.failover, results...)
		switch {
		case ctx.Err() != nil:
			return errors.New("interrupted")
		case err != nil:
			d.note(fmt.Sprintf("The part in which a spine dies ended early: %v.", err))
			return nil
		}
	}
	return nil
}

// canFailSpines says why it makes no sense here, nil if it does.
func (d *demo) canFailSpines() error {
	if d.options.fabric != "netns" {
		return errors.New("it needs network namespaces")
	}
	t := d.computed()
	if t == nil {
		return errors.New("its fabrics are computed ones; weft lab up and weft lab fail break a graph's switches")
	}
	if last := topology.NodeID(t.NumHosts() - 1); len(t.Paths(0, last).Live) < 2 {
		return fmt.Errorf("%v has one path from rack to rack, and nothing to fall back to", t)
	}
	return nil
}

// computed is the fabric, nil if it is a graph.
func (d *demo) computed() *topology.Topology {
	if f, ok := d.topology.(computedFabric); ok {
		return f.Topology
	}
	return nil
}

// failoverOptions has links like the demo's, but slower if the machine could not carry them
// beside everything else that runs.
func (d *demo) failoverOptions() failover.Options {
	t := d.computed()
	return failover.Options{
		Topology: t, RateMbit: min(d.options.rate, failover.DefaultRate(t, demoLoad)), Load: demoLoad,
		Liveness: true, Repetitions: demoFailures, Hello: demoHello, Outage: demoOutage, Settle: demoSettle,
		Seed: d.options.seed, Lab: d.options.name, Machine: machine(), Note: d.note,
	}
}

// failoverAbout says what the table shows.
func (d *demo) failoverAbout() string {
	r := d.failover[0]
	return fmt.Sprintf("A spine dies, then a link below one: %d failures of each kind, while all hosts send by drb, %.1f Mbit/s together, which is %.0f %% of what the fabric carries (links of %g Mbit/s). "+
		"Into the hole goes what leaves a host for a path over what has failed; the time is from the failure to the last such packet. Agents say hello every %v.",
		demoFailures, r.OfferedMbit, 100*demoLoad, r.RateMbit, demoHello)
}

// failoverRows are the rows of the table, its head first.
func (d *demo) failoverRows() [][]string {
	rows := [][]string{{"failure", "last into the hole ms", "worst", "Mbit/s before", "during", "after", "connections lost", "idle %"}}
	for _, r := range d.failover {
		how := r.Kind + ", hosts find out alone"
		if r.Agents {
			how = r.Kind + ", switches tell"
		}
		rows = append(rows, []string{how, fmt.Sprintf("%.1f", r.P50), fmt.Sprintf("%.1f", r.Max),
			fmt.Sprintf("%.1f", r.GoodputBefore), fmt.Sprintf("%.1f", r.GoodputDuring), fmt.Sprintf("%.1f", r.GoodputAfter),
			fmt.Sprint(r.LostConnections), fmt.Sprintf("%.0f", r.IdlePercent)})
	}
	return rows
}

func (d *demo) failoverTable(w io.Writer) error {
	if len(d.failover) == 0 {
		return nil
	}
	fmt.Fprintf(w, "\n%s\n\n", table.Paragraph(d.failoverAbout()))
	return table.Aligned(w, d.failoverRows())
}

// failoverSection is the report's.
func (d *demo) failoverSection() []report.Table {
	if len(d.failover) == 0 {
		return nil
	}
	rows := d.failoverRows()
	return []report.Table{{Title: "A spine dies", About: d.failoverAbout(), Head: rows[0], Rows: rows[1:]}}
}

// addFailover puts the results into the object of drb if that was measured, otherwise into
// the last one.
func (d *demo) addFailover(all []outcomeJSON) {
	if len(d.failover) == 0 {
		return
	}
	at := slices.IndexFunc(all, func(o outcomeJSON) bool { return o.Policy == "drb" })
	if at < 0 {
		at = len(all) - 1
	}
	all[at].Failover = d.failover
}
