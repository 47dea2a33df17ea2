package main

import (
	"context"
	"fmt"
	"slices"

	"weft/bench/schedulerlab"
	"weft/bench/stats"
	"weft/bench/testbed"
	"weft/topology"
)

// patternsLoop is how long the control loop took in a pattern's runs (thesis Table 4.7), in
// milliseconds, and what it has placed.
type patternsLoop struct {
	Loops     uint64  `json:"loops"`              // flows that were placed
	LoopMS    float64 `json:"loop_ms"`            // median of up to 64 a node: first report to placement in force
	LoopMaxMS float64 `json:"loop_max_ms"`        // the most of these
	RoundMS   float64 `json:"round_ms"`           // the scheduler's computation, last
	WriteMS   float64 `json:"etcd_write_ms"`      // and its write to etcd, last
	Moved     uint64  `json:"placements_changed"` // since the start
	Terms     uint64  `json:"terms"`              // that the scheduler has led
	Expired   uint64  `json:"pins_expired"`       // since the start, for want of a word from the scheduler
	Chosen    int     `json:"pairs_with_choice"`  // of hosts in the last run: they have a choice of paths
	Pinned    int     `json:"pinned"`             // flows between these, at its end
	Whole     int     `json:"whole_paths"`        // of these, on their whole path
}

// loopWatch reads what nodes have timed since the last time.
type loopWatch struct {
	scheduled *schedulerlab.Scheduled
	daemons   *testbed.Daemons
	seen      map[string]uint64 // loops, by node
}

// read is for at once after a pattern's last run, in a fabric where each host sends to to.
func (w *loopWatch) read(ctx context.Context, t *topology.Topology, to []topology.NodeID) (*patternsLoop, error) {
	nodes, err := w.scheduled.Nodes(ctx, w.daemons)
	if err != nil {
		return nil, err
	}
	l := &patternsLoop{}
	if l.Whole, l.Pinned, err = schedulerlab.Whole(t, nodes); err != nil {
		return nil, err
	}
	for src, dst := range to {
		if t.EdgeOf(topology.NodeID(src)) != t.EdgeOf(dst) {
			l.Chosen++
		}
	}
	var times []float64
	for name, n := range nodes {
		fresh := n.Loops - w.seen[name]
		w.seen[name] = n.Loops
		l.Loops, l.Expired = l.Loops+fresh, l.Expired+n.Expired
		times = append(times, n.LoopsMS[len(n.LoopsMS)-int(min(fresh, uint64(len(n.LoopsMS)))):]...)
	}
	if len(times) > 0 {
		l.LoopMS, l.LoopMaxMS = stats.Median(times), slices.Max(times)
	}
	s, err := w.scheduled.Status(ctx)
	l.RoundMS, l.WriteMS, l.Moved, l.Terms = s.RoundMS, s.WriteMS, s.Changed, s.Terms
	return l, err
}

// aboutLoops says what loopsTable shows.
func (o *benchPatternsOptions) aboutLoops() string {
	return fmt.Sprintf("The control loop, in ms: from a flow's first report until its placement is in force at its edge switch or host. Reports and rounds come each %v, and the wait for them is part of it. round, etcd: what the scheduler's last round took to compute and to write. pinned: of the pairs of hosts with a choice of paths, those whose flow had one at the end of the last run of each pattern; in parentheses those on the whole path. The thesis (Table 4.7) computes 100.2 for 1,024 hosts with a flow each, of which it takes 100 for the computation. It does not count the wait.", o.period)
}

// loopsTable has a scheduler a row, its head first.
func loopsTable(rows []patternsRow, results []patternsResult) [][]string {
	table := [][]string{{"row", "flows placed", "median of medians", "most", "round", "etcd", "placements changed", "terms", "pins expired", "pinned"}}
	for _, row := range rows {
		var all patternsLoop
		var medians, rounds, writes []float64
		for _, r := range results {
			if r.Row != row.name || r.Loop == nil {
				continue
			}
			if all.Loops += r.Loop.Loops; r.Loop.Loops > 0 {
				medians = append(medians, r.Loop.LoopMS)
			}
			all.LoopMaxMS, all.Moved, all.Terms, all.Expired = max(all.LoopMaxMS, r.Loop.LoopMaxMS), r.Loop.Moved, r.Loop.Terms, r.Loop.Expired
			all.Chosen, all.Pinned, all.Whole = all.Chosen+r.Loop.Chosen, all.Pinned+r.Loop.Pinned, all.Whole+r.Loop.Whole
			rounds, writes = append(rounds, r.Loop.RoundMS), append(writes, r.Loop.WriteMS)
		}
		if len(medians) == 0 {
			continue
		}
		table = append(table, []string{row.name, fmt.Sprint(all.Loops), fmt.Sprintf("%.0f", stats.Median(medians)), fmt.Sprintf("%.0f", all.LoopMaxMS),
			fmt.Sprintf("%.2f", stats.Median(rounds)), fmt.Sprintf("%.2f", stats.Median(writes)), fmt.Sprint(all.Moved), fmt.Sprint(all.Terms), fmt.Sprint(all.Expired),
			fmt.Sprintf("%d (%d) of %d", all.Pinned, all.Whole, all.Chosen)})
	}
	return table
}
