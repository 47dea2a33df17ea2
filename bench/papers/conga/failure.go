package conga

import (
	"context"
	"fmt"
	"math"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
)

// f11 is the testbed with a link down.
func f11() papers.Experiment {
	return papers.Experiment{
		Name: "conga-f11", Source: "CONGA §5.2.2, Fig. 11",
		Title:     "A link between a spine and a leaf is down: ECMP collapses past load 0.5, CONGA shifts traffic",
		Setting:   onTestbed(enterprise.parameter(), dataMining.parameter(), papers.Parameter{Name: "switch-wcmp", Value: "ECMP by the rates of paths", Chosen: true, Why: "not in the paper: shown beside"}),
		Decisions: []papers.Decision{longer, buffers("ECMP", "CONGA", "hotspot"), ownConnections("ECMP", "CONGA", "hotspot"), windows("ECMP", "CONGA", "hotspot"), initialWindow("ECMP", "CONGA", "hotspot"), timestamps("ECMP", "CONGA", "hotspot")},
		Run:       runFailure,
	}
}

var failureTimes = times{150 * time.Millisecond, 400 * time.Millisecond, 300 * time.Millisecond}

// hotspotEvery is between looks at the queue of the link that is left.
const hotspotEvery = 50 * time.Microsecond

var (
	failureLoads = []float64{0.4, 0.6, 0.7}
	// The others are shown at one load.
	otherPolicies = []string{wcmp, host}
	otherLoads    = []float64{0.7}
)

func runFailure(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
	full := failureTimes
	if o.As(usualArrivals) == longArrivals {
		full.arrivals = time.Second
	}
	hosts, tm, extra := sizeOf(o, full)
	fabric, err := broken(hosts)
	if err != nil {
		return nil, err
	}
	link, err := fabric.LinkByName(leftLink)
	if err != nil {
		return nil, err
	}
	var runs []run
	for _, t := range []traffic{enterprise, dataMining} {
		base := run{fabric: fabric, connections: persistent, traffic: t, times: tm}
		runs = append(runs, base.of(testbedSchemes, failureLoads)...)
		runs = append(runs, base.of(otherPolicies, otherLoads)...)
	}
	queues := make([][]float64, len(runs))
	results, err := play(ctx, o, runs, func(i int, c *sim.Config) {
		c.SampleEvery = hotspotEvery
		c.OnSample = func(now time.Duration, v sim.View) {
			if now <= tm.arrivals {
				queues[i] = append(queues[i], float64(v.QueueBytes(2*int(link.ID)+1))/1e6)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	out := &papers.Outcome{Settings: extra, PacketHops: hops(results)}
	if !o.Quick {
		out.Because = "an overloaded link falls behind for as long as it is overloaded, and a large flow of the data mining trace takes 0.1 s and more; how long the paper's runs are is not stated"
	}
	for _, t := range []traffic{enterprise, dataMining} {
		out.Rows = append(out.Rows, collapse(results, t)...)
		out.Charts = append(out.Charts, timesChart("Overall mean FCT, "+t.name, results, t))
	}
	hotspot := papers.Chart{Title: "Queue of the link from spine 1 to leaf 1, data mining, load 0.6", X: "MB", Y: "CDF"}
	p90 := make(map[string]float64)
	for i, r := range results {
		if r.traffic == dataMining && r.load == 0.6 {
			line := papers.CDF(labelOf(r.policy), queues[i])
			hotspot.Lines = append(hotspot.Lines, line)
			p90[r.policy] = quantile(line, 0.9)
		}
	}
	out.Rows = append(out.Rows, beyondMPTCP(results)...)
	out.Rows = append(out.Rows, papers.Within("hotspot's queue, 90th percentile, load 0.6: MPTCP by CONGA", "ratio", 4, p90[mptcp]/max(p90[conga], 1e-6), aboutPercent))
	out.Rows = append(out.Rows, papers.Sign("hotspot's queue, 90th percentile, load 0.6: ECMP > CONGA", papers.Above(p90[ecmp], p90[conga])))
	for _, policy := range testbedSchemes {
		out.Rows = append(out.Rows, papers.Info(labelOf(policy), "hotspot's queue, 90th percentile, MB, data mining, load 0.6", p90[policy]))
	}
	out.Charts = append(out.Charts, hotspot)
	return out, nil
}

// quantile reads a CDF; 0 if it has no points.
func quantile(l papers.Line, p float64) float64 {
	for i, y := range l.Y {
		if y >= p {
			return l.X[i]
		}
	}
	return 0
}

// beyondMPTCP is what the paper says of CONGA beside MPTCP.
func beyondMPTCP(results []*outcome) []papers.Row {
	least := math.Inf(1)
	for _, load := range failureLoads {
		least = min(least, papers.Change(find(results, mptcp, enterprise, load).fct(all), find(results, conga, enterprise, load).fct(all)))
	}
	high := failureLoads[len(failureLoads)-1]
	of := func(scheme string, t traffic) float64 { return find(results, scheme, t, high).fct(all) }
	rows := []papers.Row{
		papers.Within("CONGA beside MPTCP, enterprise, at best", "mean FCT, %", -30, least, aboutPercent),
		papers.Ratio(fmt.Sprintf("MPTCP by CONGA, data mining, load %v", high), "ratio of mean FCT", 2, of(mptcp, dataMining), of(conga, dataMining), aboutPercent),
	}
	for _, t := range []traffic{enterprise, dataMining} {
		rows = append(rows, papers.Order(fmt.Sprintf("%s, mean at load %v: ECMP > MPTCP > CONGA-Flow", t.name, high), of(ecmp, t), of(mptcp, t), of(congaFlow, t)))
	}
	return rows
}

// collapse is what the paper says of a traffic: ECMP "drastically deteriorates"
// above load 0.5, which we read as a mean of twice CONGA's at 0.7.
func collapse(results []*outcome, t traffic) (rows []papers.Row) {
	high := failureLoads[len(failureLoads)-1]
	flows := find(results, congaFlow, t, high).fct(all)
	ratio := find(results, ecmp, t, high).fct(all) / find(results, conga, t, high).fct(all)
	before, after := find(results, ecmp, t, failureLoads[0]).normalized(), find(results, ecmp, t, high).normalized()
	row := papers.AtLeast(fmt.Sprintf("ECMP by CONGA, %s, load %v", t.name, high), "ratio of mean FCT", 2, ratio, 0).Own()
	row.Note = "the paper: drastically deteriorates; OK is twice CONGA's"
	rows = append(rows, row,
		papers.Order(fmt.Sprintf("%s: ECMP's mean at load %v > at %v", t.name, high, failureLoads[0]), after, before),
		papers.Sign(fmt.Sprintf("%s: CONGA's mean is below ECMP's at load %v", t.name, high), papers.Above(ratio, 1)),
		papers.Sign(fmt.Sprintf("%s: CONGA-Flow's mean is below ECMP's at load %v", t.name, high), papers.Above(find(results, ecmp, t, high).fct(all), flows)))
	for _, r := range results {
		if r.traffic != t {
			continue
		}
		if r.policy == ecmp {
			rows = append(rows, offered(r))
		}
		name := labelOf(r.policy) + ", " + t.name
		rows = append(rows,
			papers.Info(atLoad(name, r.load), normalized, r.normalized()),
			papers.Info(atLoad(name, r.load), notEnded, r.underWay()))
	}
	return rows
}

// timesChart has a line of normalized times for each policy.
func timesChart(title string, results []*outcome, t traffic) papers.Chart {
	c := papers.Chart{Title: title, X: "load", Y: normalized}
	for _, r := range results {
		if r.traffic != t {
			continue
		}
		if n := len(c.Lines); n == 0 || c.Lines[n-1].Name != labelOf(r.policy) {
			c.Lines = append(c.Lines, papers.Line{Name: labelOf(r.policy)})
		}
		l := &c.Lines[len(c.Lines)-1]
		l.X, l.Y = append(l.X, r.load), append(l.Y, r.normalized())
	}
	return c
}
