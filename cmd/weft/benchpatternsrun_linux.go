package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"weft/bench/papers/thesis"
	"weft/bench/permutation"
	"weft/bench/stats"
	"weft/bench/testbed"
	"weft/lab"
)

// patternsResult is a row's in a pattern.
type patternsResult struct {
	Row            string    `json:"row"`
	Pattern        string    `json:"pattern"`
	Topology       string    `json:"topology"`
	RateMbit       float64   `json:"rate_mbit"`
	Seed           uint64    `json:"seed"`
	PercentOfIdeal float64   `json:"percent_of_ideal"` // median of the runs
	Runs           []float64 `json:"runs_percent"`
	Jain           float64   `json:"jain"`
	Retransmits    int64     `json:"retransmits"`
	RTTP99         float64   `json:"rtt_p99_us"`
	IdlePercent    float64   `json:"idle_percent"`
	PaperPercent   float64   `json:"paper_percent,omitempty"` // what the thesis has for the same
}

// paper is what the thesis measured by a row, 0 if it did not.
func (r patternsRow) paper(p thesis.Pattern) float64 {
	switch r.name {
	case "two-level":
		return p.TwoLevel
	case "classifier":
		return p.Classifier
	}
	return 0
}

// measureRow builds a row's lab and runs all patterns on it.
func (o *benchPatternsOptions) measureRow(ctx context.Context, row patternsRow, notes io.Writer) (results []patternsResult, err error) {
	p := newProgress("building " + patternsFabric + " for " + row.name)
	l, err := lab.Hold(ctx, lab.Config{Name: o.name, RateMbit: o.rate, Topology: o.shape, Balance: row.balance, Progress: p.set})
	p.end()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	for _, n := range l.Notes {
		fmt.Fprintln(notes, n)
	}
	var hosts []testbed.DaemonHost
	for n := range o.shape.Hosts() {
		h := testbed.DaemonHost{ID: n.ID, Name: n.Name, Address: n.Addr}
		if row.policy != "" {
			h.Config = fmt.Sprintf("mode: offload\npolicy: %s\nuser: root\nfailures: {budget: %d}\ntopology: %s\n", row.policy, o.probes, patternsFabric)
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
	for _, pattern := range o.chosen {
		r, err := o.measurePattern(ctx, s, row, pattern)
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

func (o *benchPatternsOptions) measurePattern(ctx context.Context, s *testbed.Session, row patternsRow, pattern thesis.Pattern) (res patternsResult, err error) {
	ideal := float64(o.shape.NumHosts()) * o.rate * plainPayload / fullFrame
	var percent, jain, idle, retransmits, rtt []float64
	for i := range o.mappings {
		to, err := pattern.To(o.seed + uint64(i))
		if err != nil {
			return res, err
		}
		p := newProgress(fmt.Sprintf("%s, %s, %d of %d", row.name, pattern.Name, i+1, o.mappings))
		r, err := permutation.Run(ctx, s, to, permutation.Load{Warmup: o.warmup, Duration: o.duration,
			Progress: func(elapsed, total time.Duration) { p.set(int(elapsed.Milliseconds()), int(total.Milliseconds())) }})
		p.end()
		if err != nil {
			return res, err
		}
		sum := 0.0
		for _, m := range r.Mbit {
			sum += m
		}
		percent, jain, idle = append(percent, percentOf(sum, ideal)), append(jain, stats.Jain(r.Mbit)), append(idle, r.IdlePercent)
		retransmits, rtt = append(retransmits, float64(r.Counters.Retransmits)), append(rtt, r.RTTMicros...)
	}
	return patternsResult{Row: row.name, Pattern: pattern.Name, Topology: patternsFabric, RateMbit: o.rate, Seed: o.seed,
		PercentOfIdeal: stats.Median(percent), Runs: percent, Jain: stats.Median(jain), Retransmits: int64(stats.Median(retransmits)),
		RTTP99: stats.Percentile(rtt, 99), IdlePercent: stats.Median(idle), PaperPercent: row.paper(pattern)}, nil
}

// about says what the table shows.
func (o *benchPatternsOptions) about() string {
	return fmt.Sprintf("%s, %g Mbit/s, kernel TCP; what arrives in percent of %d hosts at the rate of their links, of which plain TCP delivers %d bytes of each %d; median of %d runs of %v, in parentheses the least and the most; seed %d.",
		patternsFabric, o.rate, o.shape.NumHosts(), plainPayload, fullFrame, o.mappings, o.duration, o.seed)
}

// table has a pattern a row, its head first.
func (o *benchPatternsOptions) table(rows []patternsRow, results []patternsResult) [][]string {
	head := []string{"pattern"}
	for _, r := range rows {
		head = append(head, r.name)
	}
	table := [][]string{append(head, "thesis: two-level", "classifier", "least idle %")}
	for _, p := range o.chosen {
		line, idle := []string{p.Name}, 100.0
		for _, row := range rows {
			i := slices.IndexFunc(results, func(r patternsResult) bool { return r.Row == row.name && r.Pattern == p.Name })
			r := results[i]
			idle = min(idle, r.IdlePercent)
			cell := fmt.Sprintf("%.1f", r.PercentOfIdeal)
			if len(r.Runs) > 1 {
				cell += fmt.Sprintf(" (%.0f to %.0f)", slices.Min(r.Runs), slices.Max(r.Runs))
			}
			line = append(line, cell)
		}
		table = append(table, append(line, fmt.Sprintf("%.1f", p.TwoLevel), fmt.Sprintf("%.1f", p.Classifier), fmt.Sprintf("%.0f", idle)))
	}
	return table
}
