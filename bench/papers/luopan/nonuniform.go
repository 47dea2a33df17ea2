package luopan

import (
	"context"
	"slices"
	"time"

	"weft/bench/papers"
	"weft/bench/sim/workload"
)

func nonUniform() papers.Experiment {
	return papers.Experiment{
		Name: "luopan-f18", Source: "Luopan §4.6, Fig. 18", Title: "one pod fetches from two others",
		Setting: setting(parameter("flow sizes", webSearch), parameter("load", "of the links into the pod that fetches"),
			chosen("loads", "0.4, 0.6, 0.8, 0.9", "the paper's are 0.4 to 0.9"),
			chosen("probes", "go the way of the data", "a path's congestion is what they are to find")),
		Run: runNonUniform,
	}
}

func runNonUniform(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
	top, err := fatTree(pick(o, 12, 6), oversub)
	if err != nil {
		return nil, err
	}
	sizes, err := workload.LoadCDF(webSearch)
	if err != nil {
		return nil, err
	}
	clients := workload.PodOf(top, 0)
	servers := workload.PodOf(top, clients[len(clients)-1]+1)
	servers = append(servers, workload.PodOf(top, servers[len(servers)-1]+1)...)
	arrivals := pick(o, 180*time.Millisecond, 8*time.Millisecond)
	g := grid{axis: "load", x: pick(o, []float64{.4, .6, .8, .9}, []float64{.8}), schemes: schemes}
	err = g.run(ctx, o, func(load float64, scheme string) trial {
		t := trial{top: top, scheme: scheme, sizes: sizes, load: load, arrivals: arrivals, probes: pick(o, probes, 300)}
		t.source = func(seed uint64) (workload.Source, error) {
			to := workload.Among(slices.Clone(clients))
			flows, err := workload.NewPoisson(workload.PoissonConfig{Senders: servers, To: to, Sizes: sizes, Until: arrivals, Class: background, Seed: seed,
				PerSecond: workload.FlowsPerSecond(load, workload.PodMbit(top, clients[0]), sizes)})
			if err != nil {
				return nil, err
			}
			small, err := t.probing(servers, to, seed)
			return workload.Merge(flows, small), err
		}
		return t
	})
	if err != nil {
		return nil, err
	}
	var rows []papers.Row
	for _, c := range []struct {
		scheme string
		paper  bounds
	}{{presto, bounds{-53, -21}}, {random, bounds{-39, -8}}, {localScheme, bounds{-36, -6}}} {
		rows = append(rows, own(g.rows(miceTail, c.scheme, within(c.paper)))...)
		rows = append(rows, g.rows(probeTail, c.scheme, within(c.paper))...)
		rows = append(rows, g.everywhere(probeTail, c.scheme)...)
	}
	rows = append(rows,
		g.upTo(elephantMean, presto, -35), g.upTo(elephantMean, random, -35), g.upTo(elephantMean, localScheme, -26))
	return &papers.Outcome{Rows: rows, PacketHops: hops(g.all), Charts: g.charts(miceTail, probeTail, elephantMean),
		Settings: run(top.String(), arrivals, g.all),
		Because:  because(o, "signs and most changes of tails are as in the paper; where the other scheme's 99.9th percentile is a retransmission timeout and luopan's is not, the change is larger; elephants gain less")}, nil
}
