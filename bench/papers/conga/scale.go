package conga

import (
	"context"
	"fmt"
	"time"

	"weft/bench/papers"
	"weft/topology"
)

// f15 is the paper's simulation of larger fabrics.
func f15() papers.Experiment {
	return papers.Experiment{
		Name: "conga-f15", Source: "CONGA §5.5, Fig. 15",
		Title: "Web search traffic, 3:1 oversubscribed: CONGA gains more where hosts are as fast as the fabric's links",
		Setting: simulated(webSearch.parameter(), papers.Parameter{
			Name: "fabric", Value: "8 leaves with 4 uplinks of 40 Gbit/s; 48 hosts of 10 Gbit/s at each, or 12 of 40", Chosen: true,
			Why: "stated are the hosts in all, their rates, and 3:1; 8 leaves are the most that §5.5 names",
		}),
		Decisions: []papers.Decision{buffers("CONGA"), windows("CONGA")},
		Run:       runScale,
	}
}

var (
	scaleTimes = times{30 * time.Millisecond, 80 * time.Millisecond, 300 * time.Millisecond}
	scaleLoads = []float64{0.3, 0.6}
	// Fig. 15 has no CONGA-Flow.
	scaleSchemes = append([]string{ecmp, conga}, ownSchemes...)
)

// width is one of the two fabrics, which offer the same load.
type width struct {
	name  string
	hosts int // of a leaf
	mbit  int
}

var (
	narrow = width{"384 hosts of 10 Gbit/s", 48, 10_000}
	wide   = width{"96 hosts of 40 Gbit/s", 12, 40_000}
)

func runScale(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
	tm, leaves, extra := scaleTimes, 8, []papers.Parameter{scaleTimes.parameter()}
	if o.Quick {
		tm = times{time.Millisecond, 4 * time.Millisecond, 10 * time.Millisecond}
		leaves, extra = 2, []papers.Parameter{tm.parameter(), {Name: "leaves", Value: "2", Chosen: true, Why: "quick"}}
	}
	out := &papers.Outcome{Settings: extra}
	if !o.Quick {
		out.Because = "with hosts of 10 Gbit/s at load 0.3 there is next to nothing to gain here: drb, which balances each packet, is no better than CONGA, and at load 0.6 both gain about 15 %. Of what load is a part with 3:1 the paper does not say"
	}
	var runs []run
	for _, w := range []width{narrow, wide} {
		t, err := topology.Parse(fmt.Sprintf("leaf-spine:leaves=%d,spines=4,hosts=%d,host-rate=%d,fabric-rate=40000", leaves, w.hosts, w.mbit))
		if err != nil {
			return nil, err
		}
		base := run{fabric: fabric{t, 1}, initial: simulatedInitial, traffic: webSearch, times: tm}
		runs = append(runs, base.of(scaleSchemes, scaleLoads)...)
	}
	results, err := play(ctx, o, runs, nil)
	if err != nil {
		return nil, err
	}
	out.PacketHops = hops(results)
	half := len(results) / 2
	low := scaleLoads[0]
	gain := func(of []*outcome) float64 { return change(of, conga, webSearch, low, all) }
	first, second := gain(results[:half]), gain(results[half:])
	out.Rows = []papers.Row{
		papers.Between(atLoad("CONGA, "+narrow.name, low), beside, -5, -10, first, aboutPercent),
		papers.Within(atLoad("CONGA, "+wide.name, low), beside, -30, second, aboutPercent),
		papers.Order("CONGA's gain at load 0.3: hosts of 40 Gbit/s > of 10 Gbit/s", -second, -first),
		papers.Sign("CONGA's mean is below ECMP's on both fabrics at load 0.3", first < -papers.Tie && second < -papers.Tie),
	}
	for i, w := range []width{narrow, wide} {
		part := results[i*half : (i+1)*half]
		for _, r := range part {
			name := labelOf(r.policy) + ", " + w.name
			if r.policy == ecmp {
				row := offered(r)
				row.Label = atLoad(w.name, r.load)
				out.Rows = append(out.Rows, row)
			}
			out.Rows = append(out.Rows, papers.Info(atLoad(name, r.load), normalized, r.normalized()))
			if r.policy != ecmp && (r.policy != conga || r.load != low) {
				out.Rows = append(out.Rows, papers.Info(atLoad(name, r.load), beside, change(part, r.policy, webSearch, r.load, all)))
			}
		}
		out.Charts = append(out.Charts, timesChart("Overall mean FCT, "+w.name, part, webSearch))
	}
	return out, nil
}
