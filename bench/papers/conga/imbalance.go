package conga

import (
	"context"
	"fmt"
	"slices"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/bench/stats"
	"weft/topology"
)

// f12 is how evenly the uplinks of a leaf are used.
func f12() papers.Experiment {
	return papers.Experiment{
		Name: "conga-f12", Source: "CONGA §5.2.3, Fig. 12",
		Title: "Throughput of a leaf's uplinks in bins of 10 ms at load 0.6: CONGA's imbalance is well below ECMP's",
		Setting: onTestbed(enterprise.parameter(), dataMining.parameter(),
			papers.Parameter{Name: "imbalance", Value: "(most - least) / average of a leaf's four uplinks; both leaves are counted"}),
		Decisions: []papers.Decision{buffers("CONGA"), ownConnections("CONGA"), windows("CONGA"), initialWindow("CONGA"), timestamps("CONGA")},
		Run:       runImbalance,
	}
}

var imbalanceTimes = times{150 * time.Millisecond, 500 * time.Millisecond, 0}

func runImbalance(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
	hosts, tm, extra := sizeOf(o, imbalanceTimes)
	every := 10 * time.Millisecond
	if o.Quick {
		every = 500 * time.Microsecond
		extra = append(extra, papers.Parameter{Name: "bins", Value: every.String(), Chosen: true, Why: "quick"})
	}
	tm.drain = 0 // bins are those of arrivals
	fabric, err := testbed(hosts)
	if err != nil {
		return nil, err
	}
	var runs []run
	for _, t := range []traffic{enterprise, dataMining} {
		base := run{fabric: fabric, connections: persistent, traffic: t, times: tm}
		runs = append(runs, base.of(slices.Concat(testbedSchemes, ownSchemes), []float64{0.6})...)
	}
	bins := make([]*imbalance, len(runs))
	results, err := play(ctx, o, runs, func(i int, c *sim.Config) {
		bins[i] = newImbalance(fabric.Topology)
		c.SampleEvery, c.OnSample = every, bins[i].sample
	})
	if err != nil {
		return nil, err
	}
	out := &papers.Outcome{Settings: extra, PacketHops: hops(results)}
	median := func(t traffic, policy string) float64 {
		i := slices.IndexFunc(runs, func(r run) bool { return r.traffic == t && r.policy == policy })
		return stats.Median(bins[i].percent)
	}
	for _, t := range []traffic{enterprise, dataMining} {
		ours := median(t, conga) / median(t, ecmp)
		row := papers.AtMost("CONGA's median by ECMP's, "+t.name, "ratio", 0.75, ours, 0).Own()
		row.Note = "the paper: significantly better; OK is three quarters or less"
		out.Rows = append(out.Rows, papers.Sign(fmt.Sprintf("median imbalance, %s: ECMP > CONGA", t.name), papers.Above(1, ours)), row)
		if t == enterprise {
			out.Rows = append(out.Rows, papers.Order("median imbalance, enterprise: ECMP > MPTCP > CONGA-Flow", median(t, ecmp), median(t, mptcp), median(t, congaFlow)),
				papers.Order("median imbalance, enterprise: MPTCP > CONGA", median(t, mptcp), median(t, conga)))
		} else {
			out.Rows = append(out.Rows, papers.Order("median imbalance, data mining: ECMP > MPTCP", median(t, ecmp), median(t, mptcp)),
				papers.Order("median imbalance, data mining: CONGA-Flow > MPTCP", median(t, congaFlow), median(t, mptcp)))
		}
		chart := papers.Chart{Title: "Imbalance of uplinks, " + t.name, X: "%", Y: "CDF of bins"}
		for i, r := range runs {
			if r.traffic != t {
				continue
			}
			out.Rows = append(out.Rows, papers.Info(labelOf(r.policy)+", "+t.name, "median imbalance, %", stats.Median(bins[i].percent)))
			chart.Lines = append(chart.Lines, papers.CDF(labelOf(r.policy), slices.Clone(bins[i].percent)))
		}
		out.Charts = append(out.Charts, chart)
	}
	return out, nil
}

// imbalance is that of the uplinks of all leaves, bin by bin.
type imbalance struct {
	leaves  [][]int // ports
	sent    [][]int64
	begun   bool
	percent []float64
}

func newImbalance(t *topology.Topology) *imbalance {
	m := &imbalance{}
	for n := range t.Nodes() {
		if n.Layer == topology.LayerEdge {
			ports := uplinks(t, n.ID)
			m.leaves, m.sent = append(m.leaves, ports), append(m.sent, make([]int64, len(ports)))
		}
	}
	return m
}

// sample ends a bin. The first call begins one.
func (m *imbalance) sample(_ time.Duration, v sim.View) {
	for leaf, ports := range m.leaves {
		in := make([]int64, len(ports))
		var total int64
		for i, p := range ports {
			now := v.SentBytes(p)
			in[i] = now - m.sent[leaf][i]
			m.sent[leaf][i] = now
			total += in[i]
		}
		if m.begun && total > 0 {
			average := float64(total) / float64(len(ports))
			m.percent = append(m.percent, float64(slices.Max(in)-slices.Min(in))/average*100)
		}
	}
	m.begun = true
}
