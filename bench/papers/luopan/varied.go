package luopan

import (
	"context"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/bench/sim/workload"
)

// The experiments of §4.4 are at this load where the paper varies something else.
const sensibleLoad = .6

// vary runs schemes over what make changes of a trial at load 0.6, web search.
func vary(ctx context.Context, o papers.Options, g *grid, make func(x float64, t *trial) error) error {
	sizes, err := workload.LoadCDF(webSearch)
	if err != nil {
		return err
	}
	made := map[float64]trial{}
	for _, x := range g.x {
		t := trial{sizes: sizes, load: sensibleLoad, probes: pick(o, probes, 200)}
		if err := make(x, &t); err != nil {
			return err
		}
		made[x] = t
	}
	return g.run(ctx, o, func(x float64, scheme string) trial {
		t := made[x]
		t.scheme = scheme
		return t
	})
}

func scale() papers.Experiment {
	return papers.Experiment{
		Name: "luopan-f13", Source: "Luopan §4.4, Fig. 13", Title: "fat-trees of 6, 12 and 24 pods, load 0.6",
		Setting: setting(parameter("flow sizes", webSearch), parameter("oversubscription", "4:1"), timelessToo),
		Run: func(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
			g := grid{axis: "pods", x: pick(o, []float64{6, 12, 24}, []float64{4, 6}), schemes: withTimeless}
			arrivals := pick(o, map[float64]time.Duration{6: 50 * time.Millisecond, 12: 12 * time.Millisecond, 24: 3 * time.Millisecond},
				map[float64]time.Duration{4: 3 * time.Millisecond, 6: time.Millisecond})
			err := vary(ctx, o, &g, func(x float64, t *trial) (err error) {
				t.arrivals = arrivals[x]
				t.top, err = fatTree(int(x), oversub)
				return err
			})
			if err != nil {
				return nil, err
			}
			vsPresto, vsRandom := g.changes(overallMean, presto), g.changes(overallMean, random)
			middle := len(g.x) / 2
			rows := []papers.Row{papers.Within("luopan vs presto, 12 pods", "change of all flows mean, %", -40, vsPresto[middle], 10)}
			rows = append(rows, g.rows(overallMean, random, within(bounds{-35, -10}))...)
			last := len(g.x) - 1
			rows = append(rows,
				papers.Sign("luopan gains more over presto in the largest fabric than in the smallest", vsPresto[last] < vsPresto[0]-papers.Tie),
				papers.Sign("presto below random in the smallest fabric, above it in the largest", vsRandom[0] < vsPresto[0]-papers.Tie && vsRandom[last] > vsPresto[last]+papers.Tie))
			rows = append(rows, g.everywhere(overallMean, random)...)
			rows = append(rows, g.rows(overallMean, presto, papers.Info)...)
			rows = append(rows, g.rows(probeTail, presto, papers.Info)...)
			rows = append(rows, g.timeless(overallMean, presto)...)
			rows = append(rows, g.timeless(overallMean, random)...)
			return &papers.Outcome{Rows: rows, PacketHops: hops(g.all), Charts: g.charts(overallMean, probeTail),
				Settings: []papers.Parameter{
					chosen("arrivals", pick(o, "50, 12 and 3 ms", "3 and 1 ms"), "a larger fabric has more flows a millisecond; elephants take longer than 3 ms"), flowsOf(g.all)},
				Because: because(o, meansDiffer+"; how the schemes change places with scale is as in the paper")}, nil
		},
	}
}

func oversubscription() papers.Experiment {
	return papers.Experiment{
		Name: "luopan-f14", Source: "Luopan §4.4, Fig. 14", Title: "oversubscription from 1:1 to 4:1, load 0.6",
		Setting: setting(parameter("flow sizes", webSearch), timelessToo),
		Run: func(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
			g := grid{axis: "oversubscription", x: pick(o, []float64{1, 2, 4}, []float64{1, 4}), schemes: withTimeless}
			arrivals := pick(o, 13*time.Millisecond, time.Millisecond)
			err := vary(ctx, o, &g, func(x float64, t *trial) (err error) {
				t.arrivals = arrivals
				t.top, err = fatTree(pick(o, 12, 6), int(x))
				return err
			})
			if err != nil {
				return nil, err
			}
			last := len(g.x) - 1
			vsRandom := g.changes(overallMean, random)
			marginal := papers.Between("luopan vs rand, oversubscription 1", "change of all flows mean, %", -10, 10, vsRandom[0], 0).Own()
			marginal.Note = `the paper: "marginal"; OK is from -10 to 10`
			rows := []papers.Row{marginal, papers.Within("luopan vs rand, oversubscription 4", "change of all flows mean, %", -23, vsRandom[last], 10)}
			rows = append(rows, g.rows(overallMean, presto, within(bounds{-38, -22}))[1:]...)
			rows = append(rows,
				papers.Sign("luopan gains more over random at 4:1 than at 1:1", vsRandom[last] < vsRandom[0]-papers.Tie),
				g.better(overallMean, presto), g.better(overallMean, random))
			rows = append(rows, g.rows(probeTail, presto, papers.Info)...)
			rows = append(rows, g.timeless(overallMean, presto)...)
			rows = append(rows, g.timeless(overallMean, random)...)
			return &papers.Outcome{Rows: rows, PacketHops: hops(g.all), Charts: g.charts(overallMean, probeTail),
				Settings: run(pick(o, "12 pods", "6 pods"), arrivals, g.all), Because: because(o, meansDiffer)}, nil
		},
	}
}

func buffers() papers.Experiment {
	return papers.Experiment{
		Name: "luopan-f15", Source: "Luopan §4.4, Fig. 15", Title: "buffers of 25 to 400 % of 300 KB",
		Setting: setting(parameter("flow sizes", webSearch), chosen("load", "0.6", "not stated for this figure; that of Figs. 13 and 14")),
		Run: func(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
			top, err := fatTree(pick(o, 12, 6), oversub)
			if err != nil {
				return nil, err
			}
			g := grid{axis: "buffer, %", x: pick(o, []float64{25, 50, 100, 200, 400}, []float64{25, 400}), schemes: []string{luopanScheme, presto}}
			arrivals := pick(o, 16*time.Millisecond, 2*time.Millisecond)
			err = vary(ctx, o, &g, func(x float64, t *trial) error {
				t.arrivals, t.top = arrivals, top
				t.tune = func(c *sim.Config) { c.Queues = []sim.Queue{{Bytes: int(bufferBytes * x / 100)}} }
				return nil
			})
			if err != nil {
				return nil, err
			}
			var rows []papers.Row
			rows = append(rows, own(g.rows(miceTail, presto, within(bounds{-37, -19})))...)
			rows = append(rows, g.rows(probeTail, presto, within(bounds{-37, -19}))...)
			rows = append(rows, g.rows(elephantMean, presto, within(bounds{-30, -6}))...)
			rows = append(rows, g.everywhere(probeTail, presto)...)
			rows = append(rows, g.better(overallMean, presto))
			return &papers.Outcome{Rows: rows, PacketHops: hops(g.all), Charts: g.charts(miceTail, probeTail, elephantMean),
				Settings: run(top.String(), arrivals, g.all), Because: because(o, meansDiffer)}, nil
		},
	}
}

func dctcp() papers.Experiment {
	return papers.Experiment{
		Name: "luopan-f16", Source: "Luopan §4.4, Fig. 16", Title: "all schemes with DCTCP, marking at 100 KB",
		Setting: setting(parameter("flow sizes", webSearch), parameter("transport", "DCTCP, K = 100 KB"), chosen("loads", "0.3, 0.5, 0.8", "the paper's are 0.3 to 0.8"), timelessToo),
		Run: func(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
			top, err := fatTree(pick(o, 12, 6), oversub)
			if err != nil {
				return nil, err
			}
			g := grid{axis: "load", x: pick(o, []float64{.3, .5, .8}, []float64{.8}), schemes: withTimeless}
			arrivals := pick(o, 18*time.Millisecond, 2*time.Millisecond)
			err = vary(ctx, o, &g, func(x float64, t *trial) error {
				t.arrivals, t.top, t.load, t.tune = arrivals, top, x, withDCTCP
				return nil
			})
			if err != nil {
				return nil, err
			}
			vsPresto := g.changes(overallMean, presto)
			about := papers.Within("luopan vs presto, mean of loads", "change of all flows mean, %", -15, mean(vsPresto), upToTolerance)
			about.Note = `the paper: "around 15 percent"; OK is within half of that`
			rows := append([]papers.Row{about}, g.rows(overallMean, presto, papers.Info)...)
			rows = append(rows, g.better(overallMean, presto), g.better(overallMean, random), g.better(overallMean, localScheme))
			rows = append(rows, g.timeless(overallMean, presto)...)
			rows = append(rows, g.timeless(overallMean, random)...)
			return &papers.Outcome{Rows: rows, PacketHops: hops(g.all), Charts: g.charts(overallMean, probeTail),
				Settings: run(top.String(), arrivals, g.all), Because: because(o, meansDiffer)}, nil
		},
	}
}

func withDCTCP(c *sim.Config) {
	c.TCP.DCTCP = true
	c.Queues = []sim.Queue{{Bytes: bufferBytes, ECNBytes: ecnBytes}}
}
