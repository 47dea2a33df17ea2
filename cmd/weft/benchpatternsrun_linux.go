package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"weft/bench/papers/thesis"
	"weft/bench/permutation"
	"weft/bench/schedulerlab"
	"weft/bench/stats"
	"weft/bench/testbed"
	"weft/lab"
	"weft/topology"
)

// patternsResult is a row's in a pattern.
type patternsResult struct {
	Row            string        `json:"row"`
	Pattern        string        `json:"pattern"`
	Topology       string        `json:"topology"`
	RateMbit       float64       `json:"rate_mbit"`
	Seed           uint64        `json:"seed"`
	PercentOfIdeal float64       `json:"percent_of_ideal"` // of the bisection bandwidth, median of the runs
	Runs           []float64     `json:"runs_percent"`
	Jain           float64       `json:"jain"`
	Retransmits    int64         `json:"retransmits"`
	RTTP99         float64       `json:"rtt_p99_us"`
	IdlePercent    float64       `json:"idle_percent"`            // of the processors, in the run that had the least; -1: not known
	Void           bool          `json:"void"`                    // in a run it was so little that it shows the machine
	PaperPercent   float64       `json:"paper_percent,omitempty"` // what the thesis has for the same
	Loop           *patternsLoop `json:"control_loop,omitempty"`  // with weft scheduler
}

// patternsLifetime is for how many periods a placement counts that is not repeated. A machine that
// is busy for one or two ends none.
const patternsLifetime = 5

// weights are about how many seconds each part of the work takes: of each row its lab, and each
// mapping of each pattern.
func (o *benchPatternsOptions) weights(rows []patternsRow) (all []float64) {
	const build, start = 5, 1
	for range rows {
		all = append(append(all, build), slices.Repeat([]float64{(o.warmup + o.duration).Seconds() + start}, len(o.chosen)*o.mappings)...)
	}
	return all
}

// measureRow builds a row's lab and runs all patterns on it.
func (o *benchPatternsOptions) measureRow(ctx context.Context, row patternsRow, notes io.Writer) (results []patternsResult, err error) {
	shape := o.shape
	if row.oneSwitch {
		if shape, err = topology.Parse(patternsSwitch); err != nil {
			return nil, err
		}
	}
	o.progress.begin("building " + row.fabric() + " for " + row.name)
	l, err := lab.Hold(ctx, lab.Config{Name: o.name, RateMbit: o.rate, Topology: shape, Balance: row.balance, Progress: o.progress.set})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	for _, n := range l.Notes {
		fmt.Fprintln(notes, n)
	}
	var scheduled *schedulerlab.Scheduled // nil without
	spec, failures, section := row.fabric(), fmt.Sprintf("budget: %d", o.probes), ""
	if row.rule != "" {
		scheduled, err = schedulerlab.Start(ctx, schedulerlab.Config{Lab: l, Topology: patternsFabric, LinkMbit: o.rate, Rule: row.rule, Every: o.period,
			Lifetime: patternsLifetime * o.period, Switches: row.policy == "", Argv: o.self, Env: o.env})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, scheduled.Close()) }()
		spec, section = scheduled.Spec(), scheduled.Section()+"\n"
		failures += ", keys: " + scheduled.Keys()
	}
	var hosts []testbed.DaemonHost
	for n := range shape.Hosts() {
		h := testbed.DaemonHost{ID: n.ID, Name: n.Name, Address: n.Addr}
		if row.policy != "" {
			h.Config = fmt.Sprintf("mode: offload\npolicy: %s\nuser: root\nfailures: {%s}\ntopology: %q\n%s", row.policy, failures, spec, section)
		}
		hosts = append(hosts, h)
	}
	d, err := testbed.StartDaemons(ctx, l, hosts, o.self, o.env)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	s, err := d.Session()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	loops := &loopWatch{scheduled: scheduled, daemons: d, seen: make(map[string]uint64)}
	for _, pattern := range o.chosen {
		r, err := o.measurePattern(ctx, s, row, pattern, loops)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", pattern.Name, err)
		}
		results = append(results, r)
	}
	flows, err := l.Classified()
	if flows != nil {
		fmt.Fprintf(notes, "classifiers: %d flows got a port, %d moved\n", flows.Flows, flows.Moved)
	}
	return results, err
}

func (o *benchPatternsOptions) measurePattern(ctx context.Context, s *testbed.Session, row patternsRow, pattern thesis.Pattern, loops *loopWatch) (res patternsResult, err error) {
	ideal := float64(o.shape.NumHosts()) * o.rate * plainPayload / fullFrame
	var percent, jain, idle, retransmits, rtt []float64
	var loop *patternsLoop // of all runs
	for i := range o.mappings {
		to, err := pattern.To(o.seed + uint64(i))
		if err != nil {
			return res, err
		}
		if loops.scheduled != nil {
			if err := loops.scheduled.Settle(ctx); err != nil {
				return res, err
			}
		}
		o.progress.begin(fmt.Sprintf("%s, %s, mapping %d of %d", row.name, pattern.Name, i+1, o.mappings))
		r, err := permutation.Run(ctx, s, to, permutation.Load{Warmup: o.warmup, Duration: o.duration,
			Progress: o.progress.time})
		if err != nil {
			return res, err
		}
		if loops.scheduled != nil && i == o.mappings-1 {
			if loop, err = loops.read(ctx, o.shape, to); err != nil {
				return res, err
			}
		}
		mbit := receivers(to, r.Mbit)
		sum := 0.0
		for _, m := range mbit {
			sum += m
		}
		percent, jain, idle = append(percent, percentOf(sum, ideal)), append(jain, stats.Jain(mbit)), append(idle, r.IdlePercent)
		retransmits, rtt = append(retransmits, float64(r.Counters.Retransmits)), append(rtt, r.RTTMicros...)
	}
	paper := 0.0
	if row.paper != nil {
		paper = row.paper(pattern)
	}
	return patternsResult{Row: row.name, Pattern: pattern.Name, Topology: row.fabric(), RateMbit: o.rate, Seed: o.seed,
		PercentOfIdeal: stats.Median(percent), Runs: percent, Jain: stats.Median(jain), Retransmits: int64(stats.Median(retransmits)),
		RTTP99: stats.Percentile(rtt, 99), IdlePercent: leastIdle(idle), Void: patternsVoid(idle), PaperPercent: paper, Loop: loop}, nil
}

// leastIdle is the least of those that are known, -1 without any.
func leastIdle(idle []float64) float64 {
	least := -1.0
	for _, percent := range idle {
		if percent >= 0 && (least < 0 || percent < least) {
			least = percent
		}
	}
	return least
}

// patternsVoid reports whether in a run the processors were too busy.
func patternsVoid(idle []float64) bool {
	least := leastIdle(idle)
	return least >= 0 && least < testbed.CPUBound
}

// fabric is what the row's lab is.
func (r patternsRow) fabric() string {
	if r.oneSwitch {
		return patternsSwitch
	}
	return patternsFabric
}

// receivers has what arrives at each host that receives, of all that send to it.
func receivers(to []topology.NodeID, mbit []float64) (list []float64) {
	at := make(map[topology.NodeID]int)
	for i, dst := range to {
		if _, ok := at[dst]; !ok {
			at[dst] = len(list)
			list = append(list, 0)
		}
		list[at[dst]] += mbit[i]
	}
	return list
}

// about says what the table shows.
func (o *benchPatternsOptions) about() string {
	return fmt.Sprintf("%s, %g Mbit/s, kernel TCP; what arrives in percent of the bisection bandwidth, which is %d hosts at the rate of their links, of which plain TCP delivers %d bytes of each %d; median of %d runs of %v, in parentheses the least and the most; seed %d. VOID: the processors were idle less than %d %% of a run, so it shows the machine and not the fabric. least idle %%: in the run that had the least.",
		patternsFabric, o.rate, o.shape.NumHosts(), plainPayload, fullFrame, o.mappings, o.duration, o.seed, testbed.CPUBound)
}

// table has a pattern a row, its head first.
func (o *benchPatternsOptions) table(rows []patternsRow, results []patternsResult) [][]string {
	head := []string{"pattern"}
	for _, r := range rows {
		head = append(head, r.name)
	}
	for _, r := range rows {
		if r.paper != nil {
			head = append(head, "thesis: "+r.name)
		}
	}
	table := [][]string{append(head, "least idle %")}
	for _, p := range o.chosen {
		line := []string{p.Name}
		var idle []float64
		for _, row := range rows {
			i := slices.IndexFunc(results, func(r patternsResult) bool { return r.Row == row.name && r.Pattern == p.Name })
			r := results[i]
			idle = append(idle, r.IdlePercent)
			cell := fmt.Sprintf("%.1f", r.PercentOfIdeal)
			if len(r.Runs) > 1 {
				cell += fmt.Sprintf(" (%.0f to %.0f)", slices.Min(r.Runs), slices.Max(r.Runs))
			}
			if r.Void {
				cell += " VOID"
			}
			line = append(line, cell)
		}
		for _, row := range rows {
			switch {
			case row.paper == nil:
			case row.paper(p) == 0:
				line = append(line, "-")
			default:
				line = append(line, fmt.Sprintf("%.1f", row.paper(p)))
			}
		}
		least := "-"
		if percent := leastIdle(idle); percent >= 0 {
			least = fmt.Sprintf("%.0f", percent)
		}
		table = append(table, append(line, least))
	}
	return table
}
