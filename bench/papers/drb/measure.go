package drb

import (
	"context"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"weft/bench/papers"
	"weft/bench/sim"
)

// labels are the paper's names of policies.
var labels = map[string]string{"ecmp": "ECMP", "rrb": "RRB", "rb": "RB", "drb": "DRB"}

// policies are in the order of the paper's bars.
var policies = []string{"ecmp", "rrb", "rb", "drb"}

// measured is what came out of a run.
type measured struct {
	*sim.Result
	label   string
	warmup  time.Duration
	goodput float64   // mean of the hosts, Mbit/s
	hosts   []float64 // each one's
}

// simulate runs all, and returns by policy what was measured, and the packet-hops.
func simulate(ctx context.Context, o papers.Options, configs []sim.Config) ([]measured, uint64, error) {
	results, err := papers.Sweep(ctx, o, configs)
	if err != nil {
		return nil, 0, err
	}
	all := make([]measured, len(results))
	for i, r := range results {
		m := measured{Result: r, label: labels[configs[i].Policy], warmup: configs[i].Warmup}
		for _, bytes := range r.DeliveredBytes {
			m.hosts = append(m.hosts, float64(bytes)*8/(r.End-configs[i].Warmup).Seconds()/1e6)
		}
		for _, g := range m.hosts {
			m.goodput += g / float64(len(m.hosts))
		}
		all[i] = m
	}
	return all, papers.Hops(results), nil
}

// byLabel finds a run of a label.
func byLabel(runs []measured, label string) measured {
	for _, m := range runs {
		if m.label == label {
			return m
		}
	}
	panic("no run of " + label)
}

const (
	goodputMetric    = "goodput, Mbit/s per host"
	resequenceMetric = "resequencing delay, mean, µs"
	roundTripMetric  = "RTT, 99th percentile, µs"
	latencyMetric    = "network latency, mean, µs"
	latencyTail      = "network latency, 99th percentile, µs"
)

func mean(h *hdrhistogram.Histogram) float64 { return h.Mean() / 1000 }

func p99(h *hdrhistogram.Histogram) float64 { return float64(h.ValueAtQuantile(99)) / 1000 }

// queueingDelays is Fig. 6b: waiting by hop, and in all.
func queueingDelays(title string, runs []measured) papers.Chart {
	c := papers.Chart{Title: title, X: "hop", Y: "mean queueing delay, µs"}
	for _, m := range runs {
		line, total := papers.Line{Name: m.label}, 0.0
		for hop := sim.EdgeUp; hop < sim.Places; hop++ {
			wait := mean(m.Places[hop].Wait)
			total += wait
			line.X = append(line.X, float64(hop))
			line.Y = append(line.Y, wait)
		}
		line.Name = fmt.Sprintf("%s (total %.0f µs)", m.label, total)
		c.Lines = append(c.Lines, line)
	}
	return c
}

// bars is a goodput per policy beside the paper's.
func bars(title, y string, ours []measured, paper map[string]float64) papers.Chart {
	c := papers.Chart{Title: title, Y: y}
	for _, m := range ours {
		b := papers.Bar{Name: m.label, Ours: m.goodput}
		if p, ok := paper[m.label]; ok {
			b.Paper = &p
		}
		c.Bars = append(c.Bars, b)
	}
	return c
}

// cdfs draws a histogram of every run, in microseconds.
func cdfs(title, x string, runs []measured, of func(measured) *hdrhistogram.Histogram) papers.Chart {
	c := papers.Chart{Title: title, X: x, Y: "CDF"}
	for _, m := range runs {
		c.Lines = append(c.Lines, papers.HistogramCDF(m.label, of(m), 1000))
	}
	return c
}

// tails draws what the paper states of 99th percentiles, by label.
func tails(c papers.Chart, stated map[string]float64) papers.Chart {
	for _, l := range c.Lines {
		if p99, ok := stated[l.Name]; ok {
			c.State(l.Name, p99, 0.99)
		}
	}
	return c
}

func roundTrips(m measured) *hdrhistogram.Histogram   { return m.RTT }
func latencies(m measured) *hdrhistogram.Histogram    { return m.Latency }
func resequencing(m measured) *hdrhistogram.Histogram { return m.Resequencing }
