package luopan

import (
	"context"
	"fmt"
	"time"

	"weft/bench/papers"
	"weft/bench/sim/workload"
)

// overallClaims are changes in percent, luopan's to Presto but where said. Elephants
// 0: there are none, as in the cache workload, whose largest flow has 3.8 MB.
type overallClaims struct {
	mice              bounds
	miceRandom        float64
	medium, elephants float64
}

// overall is the comparison of all schemes over load.
func overall(name, source, title, distribution string, claims overallClaims) papers.Experiment {
	more := []papers.Parameter{
		parameter("flow sizes", distribution),
		chosen("loads", "0.2, 0.5, 0.8", "the paper's are 0.1 to 0.8"),
	}
	if distribution == cache {
		more[0] = chosen("flow sizes", distribution, "the paper's are of Roy et al. 2015, in a plot only; this is that study's Fig. 6")
	}
	return papers.Experiment{
		Name: name, Source: source, Title: "completion times by size, " + title + " workload, 4:1",
		Setting: setting(more...),
		Run: func(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
			return runOverall(ctx, o, distribution, claims)
		},
	}
}

func runOverall(ctx context.Context, o papers.Options, distribution string, claims overallClaims) (*papers.Outcome, error) {
	top, err := fatTree(pick(o, 12, 6), oversub)
	if err != nil {
		return nil, err
	}
	sizes, err := workload.LoadCDF(distribution)
	if err != nil {
		return nil, err
	}
	arrivals := pick(o, 14*time.Millisecond, 2*time.Millisecond)
	g := grid{axis: "load", x: pick(o, []float64{.2, .5, .8}, []float64{.8}), schemes: schemes}
	err = g.run(ctx, o, func(load float64, scheme string) trial {
		return trial{top: top, scheme: scheme, sizes: sizes, load: load, arrivals: arrivals, probes: pick(o, probes, 500)}
	})
	if err != nil {
		return nil, err
	}
	var rows []papers.Row
	rows = append(rows, own(g.rows(miceTail, presto, within(claims.mice)))...)
	rows = append(rows, g.rows(probeTail, presto, within(claims.mice))...)
	rows = append(rows,
		g.upTo(miceTail, random, claims.miceRandom).Own(),
		g.upTo(probeTail, random, claims.miceRandom),
		g.upTo(mediumMean, presto, claims.medium),
		g.better(probeTail, presto),
		g.better(probeTail, random),
		g.better(mediumMean, presto),
		g.better(overallMean, localScheme))
	measures := []measure{miceTail, probeTail, mediumMean}
	if claims.elephants != 0 {
		measures = append(measures, elephantMean)
		rows = append(rows, g.upTo(elephantMean, presto, claims.elephants))
	}
	for _, m := range measures {
		rows = append(rows, g.rows(m, localScheme, papers.Info)...)
	}
	return &papers.Outcome{
		Rows: rows, PacketHops: hops(g.all), Settings: run(top.String(), arrivals, g.all),
		Charts:  g.charts(measures...),
		Because: because(o, meansDiffer+"; local sampling, which sees queues as they are, comes out a little better than samples of up to 80 µs ago, in the paper a little worse"),
	}, nil
}

// run is what a run says of itself.
func run(fabric string, arrivals time.Duration, all []*times) []papers.Parameter {
	return []papers.Parameter{
		parameter("fabric", fabric),
		chosen("arrivals", fmt.Sprint(arrivals), "the paper does not say how long it runs but for 250 ms in Figs. 2 and 17; this fits a few minutes of CPU"),
		flowsOf(all),
	}
}
