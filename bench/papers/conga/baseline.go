package conga

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"weft/bench/papers"
)

// sizeOf is a run's, by whether it is to be quick.
func sizeOf(o papers.Options, full times) (hosts int, t times, extra []papers.Parameter) {
	if !o.Quick {
		return 32, full, []papers.Parameter{full.parameter()}
	}
	t = times{2 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond}
	return 8, t, []papers.Parameter{t.parameter(), {Name: "hosts", Value: "8 of a rack", Chosen: true, Why: "quick"}}
}

// f9 and f10 are the testbed without failures.
func f9() papers.Experiment {
	return papers.Experiment{
		Name: "conga-f9", Source: "CONGA §5.2.1, Fig. 9",
		Title:     "Enterprise traffic on a whole leaf-spine: all schemes are much alike",
		Setting:   onTestbed(enterprise.parameter()),
		Decisions: []papers.Decision{buffers("CONGA"), ownConnections("CONGA"), windows("CONGA"), initialWindow("CONGA"), timestamps("CONGA")},
		Run: func(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
			return baseline(ctx, o, enterprise, "small flows wait behind large ones, in ECMP's crowded queues and on their own connection; neither the room of ports nor the connections' windows are stated (see the decisions), nor why CONGA costs small flows 12 to 19 %", enterpriseRows)
		},
	}
}

func f10() papers.Experiment {
	return papers.Experiment{
		Name: "conga-f10", Source: "CONGA §5.2.1, Fig. 10",
		Title:     "Data mining traffic on a whole leaf-spine: ECMP is noticeably worse at high load",
		Setting:   onTestbed(dataMining.parameter()),
		Decisions: []papers.Decision{buffers("CONGA"), ownConnections("CONGA"), windows("CONGA"), initialWindow("CONGA"), timestamps("CONGA")},
		Run: func(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
			return baseline(ctx, o, dataMining, "a run has about 130 large flows at load 0.9, and the paper's runs are longer by a factor that is not stated", dataMiningRows)
		},
	}
}

// baselineTimes has time for several of the longest flows, one after the other.
var baselineTimes = times{150 * time.Millisecond, 450 * time.Millisecond, 500 * time.Millisecond}

var (
	baselineLoads = []float64{0.5, 0.8, 0.9}
	// weft's own are shown at one load.
	ownLoads = []float64{0.8}
)

// of makes runs of policies, each at all loads.
func (r run) of(policies []string, loads []float64) (runs []run) {
	for _, r.policy = range policies {
		for _, r.load = range loads {
			runs = append(runs, r)
		}
	}
	return runs
}

func baseline(ctx context.Context, o papers.Options, t traffic, because string, claims func([]*outcome) []papers.Row) (*papers.Outcome, error) {
	hosts, tm, extra := sizeOf(o, baselineTimes)
	fabric, err := testbed(hosts)
	if err != nil {
		return nil, err
	}
	base := run{fabric: fabric, connections: persistent, traffic: t, times: tm}
	runs := append(base.of(testbedSchemes, baselineLoads), base.of(ownSchemes, ownLoads)...)
	results, err := play(ctx, o, runs, nil)
	if err != nil {
		return nil, err
	}
	out := &papers.Outcome{
		Rows:   append(claims(results), allTimes(results)...),
		Charts: timeCharts(results), Settings: extra, PacketHops: hops(results),
	}
	if !o.Quick {
		out.Because = because
	}
	return out, nil
}

// change is by how many percent a policy's mean of a bin differs from ECMP's. Where a
// quick run has no such flow there is no difference.
func change(results []*outcome, policy string, t traffic, load float64, b bin) float64 {
	from, to := find(results, ecmp, t, load), find(results, policy, t, load)
	if from.flows(b) == 0 {
		return 0
	}
	return papers.Change(from.fct(b), to.fct(b))
}

func enterpriseRows(results []*outcome) (rows []papers.Row) {
	for _, scheme := range congas {
		for _, load := range baselineLoads {
			x := change(results, scheme, enterprise, load, all)
			row := papers.Between(atLoad(labelOf(scheme)+", all flows", load), beside, -similar, similar, x, 0).Own()
			row.Note = fmt.Sprintf("the paper: similar; OK is within %d %%", similar)
			rows = append(rows, row)
		}
		for _, load := range baselineLoads {
			if load <= 0.8 {
				rows = append(rows, papers.Between(atLoad(labelOf(scheme)+", small flows", load), beside, 12, 19, change(results, scheme, enterprise, load, little), 0))
			}
		}
		rows = append(rows, mostAt(results, scheme, enterprise, big, -20)...)
	}
	return append(rows, worstAt(results, mptcp, enterprise, all, 25), worstAt(results, mptcp, enterprise, little, 50))
}

func dataMiningRows(results []*outcome) []papers.Row {
	rows := mostAt(results, conga, dataMining, all, -35)
	rows = append(rows, mostAt(results, mptcp, dataMining, all, -35)...)
	for _, scheme := range []string{conga, congaFlow, mptcp} {
		for _, load := range baselineLoads[1:] {
			rows = append(rows, papers.Sign(fmt.Sprintf("%s's mean is below ECMP's at load %v", labelOf(scheme), load), change(results, scheme, dataMining, load, all) < -papers.Tie))
		}
	}
	high := baselineLoads[len(baselineLoads)-1]
	return append(rows, papers.Sign(fmt.Sprintf("MPTCP's mean of small flows is above ECMP's at load %v", high), change(results, mptcp, dataMining, high, little) > papers.Tie))
}

// worstAt is the most that a scheme loses to ECMP at a load, of which the text says "up to".
func worstAt(results []*outcome, scheme string, t traffic, b bin, paper float64) papers.Row {
	most := math.Inf(-1)
	for _, load := range baselineLoads {
		most = max(most, change(results, scheme, t, load, b))
	}
	return papers.Within(fmt.Sprintf("%s, %s, at worst", labelOf(scheme), b.name), beside, paper, most, aboutPercent)
}

// mostAt is the most that a scheme gains over ECMP at a load, of which the text says
// "as much as" or "up to".
func mostAt(results []*outcome, scheme string, t traffic, b bin, paper float64) []papers.Row {
	least, at := math.Inf(1), 0.0
	for _, load := range baselineLoads {
		if x := change(results, scheme, t, load, b); x < least {
			least, at = x, load
		}
	}
	label := fmt.Sprintf("%s, %s, at best", labelOf(scheme), b.name)
	return []papers.Row{papers.Within(label, beside, paper, least, aboutPercent), papers.Info(label, "load", at)}
}

// The metrics of flow completion times, and on how many flows they rest.
const (
	beside     = "mean FCT, % beside ECMP's"
	normalized = "mean FCT, of an idle network's"
	notEnded   = "flows that had not ended, %"
)

func atLoad(what string, load float64) string { return fmt.Sprintf("%s, load %v", what, load) }

// allTimes are rows of what has no figure in the paper's text.
func allTimes(results []*outcome) (rows []papers.Row) {
	for _, r := range results {
		rows = append(rows, papers.Info(atLoad(labelOf(r.policy), r.load), normalized, r.normalized()))
	}
	for _, r := range results {
		if slices.Contains(testbedSchemes, r.policy) {
			continue
		}
		for _, b := range []bin{all, little, big} {
			rows = append(rows, papers.Info(atLoad(labelOf(r.policy)+", "+b.name, r.load), beside, change(results, r.policy, r.traffic, r.load, b)))
		}
	}
	for _, r := range results {
		rows = append(rows, papers.Info(atLoad(labelOf(r.policy), r.load), notEnded, r.underWay()))
	}
	for _, r := range results {
		if r.policy == ecmp {
			rows = append(rows, offered(r), papers.Info(atLoad("flows above 10 MB", r.load), "counted", float64(r.flows(big))))
		}
	}
	return rows
}

// offered tells how much the flows of a run were, which is the same for all policies.
func offered(r *outcome) papers.Row {
	return papers.Info(atLoad(r.name, r.load), "load of the flows that were drawn", r.offered())
}

// timeCharts are parts a to c of the figures.
func timeCharts(results []*outcome) []papers.Chart {
	a := papers.Chart{Title: "All flows", X: "load", Y: normalized}
	b := papers.Chart{Title: "Small flows (below 100 KB)", X: "load", Y: "mean FCT, of ECMP's"}
	c := papers.Chart{Title: "Large flows (above 10 MB)", X: "load", Y: "mean FCT, of ECMP's"}
	line := make(map[string]*[3]papers.Line)
	var order []string
	for _, r := range results {
		l := line[r.policy]
		if l == nil {
			l = &[3]papers.Line{{Name: labelOf(r.policy)}, {Name: labelOf(r.policy)}, {Name: labelOf(r.policy)}}
			line[r.policy] = l
			order = append(order, r.policy)
		}
		base := find(results, ecmp, r.traffic, r.load)
		for i, y := range []float64{r.normalized(), r.fct(little) / base.fct(little), r.fct(big) / base.fct(big)} {
			l[i].X, l[i].Y = append(l[i].X, r.load), append(l[i].Y, y)
		}
	}
	for _, policy := range order {
		a.Lines, b.Lines, c.Lines = append(a.Lines, line[policy][0]), append(b.Lines, line[policy][1]), append(c.Lines, line[policy][2])
	}
	return []papers.Chart{a, b, c}
}
