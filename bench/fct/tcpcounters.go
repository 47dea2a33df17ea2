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

// tcpSince counts from an earlier reading on. Weft's own TCP does not count openings.
func tcpSince(s *testbed.Session, before testbed.Counters) (tcpCounters, error) {
	now, err := s.Counters()
	if err != nil || len(s.Stacks) > 0 {
		return tcpCounters{}, err
	}
	return tcpCounters{true, float64(now.SYNRetransmits - before.SYNRetransmits), float64(now.Timeouts - before.Timeouts)}, nil
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
