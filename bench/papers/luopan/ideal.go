package luopan

import (
	"context"
	"time"

	"weft/bench/papers"
	"weft/bench/sim/workload"
	"weft/bench/stats"
)

// ideal is what congestion does to Presto's tail.
func ideal() papers.Experiment {
	return papers.Experiment{
		Name: "luopan-f2", Source: "Luopan §2.2, Fig. 2", Title: "2 KB flows beside the web search workload: Presto's tail",
		Setting: setting(
			parameter("small flows", "20,000 of 2 KB"),
			chosen("ideal", "luopan, 2 samples every 40 µs", "the paper's routes each flowcell by the least congested path, which nobody can know in time, so ours is a bound from below; 36 samples every 10 µs filled a third of the links with probes"),
			chosen("load", "0.6", "not stated; that of §4.4"),
		),
		Run: runIdeal,
	}
}

func runIdeal(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
	top, err := fatTree(pick(o, 12, 6), oversub)
	if err != nil {
		return nil, err
	}
	sizes, err := workload.LoadCDF(webSearch)
	if err != nil {
		return nil, err
	}
	arrivals := pick(o, 20*time.Millisecond, time.Millisecond)
	base := trial{top: top, sizes: sizes, load: .6, arrivals: arrivals, probes: pick(o, 20_000, 1000)}
	names := []string{presto, luopanScheme, published, random, "flowcell-drb", "drb"}
	trials := make([]trial, len(names))
	for i, name := range names {
		trials[i] = base
		trials[i].scheme = name
	}
	all, err := play(ctx, o, trials, nil)
	if err != nil {
		return nil, err
	}
	chart := papers.Chart{Title: "2 KB flows", X: "completion time, µs", Y: "CDF"}
	var rows []papers.Row
	for i, t := range all {
		rows = append(rows,
			papers.Info(names[i], "p99.9, µs", probeTail.of(t)),
			papers.Info(names[i], "median, µs", stats.Median(t.probes)))
		chart.Lines = append(chart.Lines, papers.CDF(names[i], t.probes))
	}
	average := papers.AtMost("presto / luopan", "median of 2 KB flows, ratio", 1.1, stats.Median(all[0].probes)/stats.Median(all[1].probes), 10).Own()
	average.Note = `the paper: "similar average-case performance"; OK is at most 1.1`
	rows = append([]papers.Row{
		papers.Ratio("presto / luopan", "p99.9 of 2 KB flows, ratio", 2, probeTail.of(all[0]), probeTail.of(all[1]), 10),
		average,
		papers.Order("p99.9: presto > luopan", probeTail.of(all[0]), probeTail.of(all[1])),
	}, rows...)
	return &papers.Outcome{Rows: rows, Charts: []papers.Chart{chart}, PacketHops: hops(all), Settings: run(top.String(), arrivals, all),
		Because: because(o, "luopan stands for the ideal, and is not; drb and flowcell-drb, which know of no congestion, have lower tails than it")}, nil
}
