package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"weft/bench/schedulerlab"
	"weft/bench/stats"
	"weft/bench/testbed"
)

// patternsLoop is how long the control loop took in a pattern's runs (thesis Table 4.7), in
// milliseconds.
type patternsLoop struct {
	Loops     uint64  `json:"loops"`              // flows that were placed
	LoopMS    float64 `json:"loop_ms"`            // median of up to 64 a node: first report to placement in force
	LoopMaxMS float64 `json:"loop_max_ms"`        // the most of these
	RoundMS   float64 `json:"round_ms"`           // the scheduler's computation, last
	WriteMS   float64 `json:"etcd_write_ms"`      // and its write to etcd, last
	Moved     uint64  `json:"placements_changed"` // since the start
}

// loopWatch reads what nodes have timed since the last time.
type loopWatch struct {
	scheduled *schedulerlab.Scheduled
	daemons   *testbed.Daemons
	seen      map[string]uint64 // loops, by node
}

func (w *loopWatch) read(ctx context.Context) (*patternsLoop, error) {
	nodes, err := w.scheduled.Switches(ctx)
	if err != nil {
		return nil, err
	}
	for _, h := range w.daemons.Hosts {
		if h.Config == "" {
			continue
		}
		text, err := w.daemons.Status(h)
		if err != nil {
			return nil, err
		}
		var s struct{ Scheduler schedulerlab.Node }
		if err := json.Unmarshal(text, &s); err != nil {
			return nil, fmt.Errorf("%s: weft status --json: %w", h.Name, err)
		}
		nodes[h.Name] = s.Scheduler
	}
	l := &patternsLoop{}
	var times []float64
	for name, n := range nodes {
		fresh := n.Loops - w.seen[name]
		w.seen[name] = n.Loops
		l.Loops += fresh
		times = append(times, n.LoopsMS[len(n.LoopsMS)-int(min(fresh, uint64(len(n.LoopsMS)))):]...)
	}
	if len(times) > 0 {
		l.LoopMS, l.LoopMaxMS = stats.Median(times), slices.Max(times)
	}
	s, err := w.scheduled.Status(ctx)
	l.RoundMS, l.WriteMS, l.Moved = s.RoundMS, s.WriteMS, s.Changed
	return l, err
}

// aboutLoops says what loopsTable shows.
func (o *benchPatternsOptions) aboutLoops() string {
	return fmt.Sprintf("The control loop, in ms: from a flow's first report until its placement is in force at its edge switch or host, of it the last round's computation and write to etcd; reports and rounds each %v, which is waited for. The thesis (Table 4.7) computes 100.2 for 1,024 hosts with a flow each, of which it takes 100 for the computation, and does not count the waiting.", o.period)
}

// loopsTable has a scheduler a row, its head first.
func loopsTable(rows []patternsRow, results []patternsResult) [][]string {
	table := [][]string{{"row", "flows placed", "median of medians", "most", "round", "etcd", "placements changed"}}
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
			all.LoopMaxMS, all.Moved = max(all.LoopMaxMS, r.Loop.LoopMaxMS), r.Loop.Moved
			rounds, writes = append(rounds, r.Loop.RoundMS), append(writes, r.Loop.WriteMS)
		}
		if len(medians) == 0 {
			continue
		}
		table = append(table, []string{row.name, fmt.Sprint(all.Loops), fmt.Sprintf("%.0f", stats.Median(medians)), fmt.Sprintf("%.0f", all.LoopMaxMS),
			fmt.Sprintf("%.2f", stats.Median(rounds)), fmt.Sprintf("%.2f", stats.Median(writes)), fmt.Sprint(all.Moved)})
	}
	return table
}
