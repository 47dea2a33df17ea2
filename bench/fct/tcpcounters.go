package fct

import (
	"weft/bench/stats"
	"weft/bench/testbed"
)

// tcpCounters are what the TCP of all hosts did in a run.
type tcpCounters struct {
	known                 bool // of the kernel's TCP in a lab
	synRetransmits, fires float64
}

// tcpBetween counts from a reading to a later one. Weft's own TCP does not count openings.
func tcpBetween(s *testbed.Session, before, after testbed.Counters) tcpCounters {
	if len(s.Stacks) > 0 {
		return tcpCounters{}
	}
	return tcpCounters{true, float64(after.SYNRetransmits - before.SYNRetransmits), float64(after.Timeouts - before.Timeouts)}
}

// countTCP fills in the medians of the runs' counters; -1 where nobody counted.
func (r *Result) countTCP(runs []run) {
	var syn, fires []float64
	for _, run := range runs {
		if run.tcp.known {
			syn, fires = append(syn, run.tcp.synRetransmits), append(fires, run.tcp.fires)
		}
	}
	r.SYNRetransmits, r.Timeouts = -1, -1
	if len(syn) > 0 {
		r.SYNRetransmits, r.Timeouts = stats.Median(syn), stats.Median(fires)
	}
}
