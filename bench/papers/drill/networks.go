package drill

import (
	"context"
	"fmt"
	"time"

	"weft/bench/papers"
)

// The fabrics of Figs. 9 and 10, and smaller ones.
const (
	even        = "leaf-spine:leaves=16,spines=20,hosts=20,host-rate=10000,fabric-rate=10000"
	evenQuick   = "leaf-spine:leaves=4,spines=10,hosts=10,host-rate=10000,fabric-rate=10000"
	uneven      = "leaf-spine:leaves=16,spines=12,hosts=20,host-rate=10000,fabric-rate=10000"
	unevenQuick = "leaf-spine:leaves=4,spines=6,hosts=10,host-rate=10000,fabric-rate=10000"
	vl2         = "vl2:d0=2,d1=8,d2=8,hosts=20,host-rate=1000,fabric-rate=10000,core-rate=10000"
	vl2Quick    = "vl2:d0=2,d1=4,d2=4,hosts=10,host-rate=1000,fabric-rate=10000,core-rate=10000"
)

// wholeFlows is DRILL without its grain: it chooses for a flow's first packet. It is not ECMP,
// which would be the same run as the ECMP beside it.
var wholeFlows = papers.Mutant{Name: "DRILL chooses for whole flows", About: []string{"DRILL"}, Replace: map[string]string{drill.policy: drillFlow.policy}}

var fourSchemes = []scheme{ecmp, conga, presto, drill}

var oversubscribed = papers.Experiment{
	Name: "drill-f9", Source: "DRILL §4, Fig. 9",
	Title: "20 and 12 spines, 16 leaves of 20 hosts, 10 Gbit/s: oversubscription changes nothing",
	Setting: traced(stated("fabric", even), stated("fabric", uneven), stated("load", "80 %"),
		chosen("order of the schemes", "that of Figs. 6 and 7, as rows of our own", "the paper shows distributions, which we do not have, and says of them \"no significant performance differences\" between networks alone")),
	Mutants:   []papers.Mutant{wholeFlows},
	Decisions: open(),
	Run: func(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
		const load = .8
		arrivals := took(o, 40*time.Millisecond, time.Millisecond)
		out := new(papers.Outcome)
		var grids []*grid
		for _, f := range []struct{ name, figure, full, quick string }{
			{"1:1", "Fig. 9a", even, evenQuick}, {"5:3", "Fig. 9b", uneven, unevenQuick},
		} {
			top, err := fabric(o, f.full, f.quick)
			if err != nil {
				return nil, err
			}
			g := &grid{loads: []float64{load}, schemes: fourSchemes}
			if err := g.run(ctx, o, trial{top: top, arrivals: arrivals}); err != nil {
				return nil, err
			}
			grids = append(grids, g)
			out.PacketHops += g.hops()
			out.Rows = append(out.Rows, g.inOrder(f.name, load).Own())
			for _, s := range g.schemes {
				out.Rows = append(out.Rows, papers.Info(s.name+", "+f.name, "FCT mean, µs", g.at(load, s).mean()),
					papers.Info(s.name+", "+f.name, "FCT median, µs", g.at(load, s).percentile(50)))
			}
			out.Charts = append(out.Charts, g.cdfs(f.figure+": load 0.8, "+f.name, load))
		}
		for _, s := range fourSchemes {
			r := papers.Within(s.name+", 5:3 by 1:1", "FCT mean, quotient", 1, grids[1].at(load, s).mean()/grids[0].at(load, s).mean(), papers.Plotted)
			r.Note = "the paper: no significant difference; OK is within 50 %"
			out.Rows = append(out.Rows, r.Own())
		}
		out.Settings = durations(arrivals, grids[0])
		out.Because = because(o, "CONGA is before Presto, as in drill-f6; with a window of 256 KB the order was that of Fig. 6 in both (one seed, a quarter of the time). At 80 % of the links up hosts' own links are 80 % full in the one fabric, and 48 % in the other: that alone makes flows faster, by every scheme")
		return out, nil
	},
}

// inOrder is Fig. 6's order of the mean FCTs, in a fabric and at a load.
func (g *grid) inOrder(fabric string, load float64) papers.Row {
	mean := (*flows).mean
	return papers.Order(fmt.Sprintf("FCT mean at load %v, %s: ECMP > CONGA > Presto > DRILL", load, fabric),
		mean(g.at(load, ecmp)), mean(g.at(load, conga)), mean(g.at(load, presto)), mean(g.at(load, drill)))
}

// byUplinks is for what the paper's "core links" leave out: those of ToR switches.
var byUplinks = papers.Decision{
	Parameter: "rate of ToR switches' links up", About: all, Ends: "from the hosts' to the cores'",
	Values: []papers.DecisionValue{uplinks("1 Gbit/s", 1000), uplinks("4 Gbit/s", 4000)},
}

func uplinks(name string, mbit int) papers.DecisionValue {
	return papers.DecisionValue{Name: name, Replace: map[string]string{
		vl2: fmt.Sprintf("vl2:d0=2,d1=8,d2=8,hosts=20,host-rate=1000,fabric-rate=%d,core-rate=10000", mbit),
	}}
}

var threeStages = papers.Experiment{
	Name: "drill-f10", Source: "DRILL §4, Fig. 10",
	Title: "VL2 of 16 ToR switches, 8 aggregation and 4 intermediate switches: DRILL keeps flow completion times short",
	Setting: traced(stated("fabric", "VL2 of 16 ToR switches with 20 hosts of 1 Gbit/s each, 8 aggregation and 4 intermediate switches, core links of 10 Gbit/s"), stated("loads", "20 and 70 %"),
		chosen("ToR switches' links up", "two of 10 Gbit/s each", "not stated, unless they are among the \"core links\". It decides the outcome: with 10 nothing waits and all schemes are alike, with 1 or 4 DRILL was the best (one seed, a quarter of the time)"),
		chosen("order of the schemes", "DRILL below each of the others, as rows of our own", "the paper shows distributions, which we do not have, and says that DRILL \"is effective in keeping the FCT short\""),
		stated("CONGA", "ToR switches choose by its tables, cores by hash"),
		chosen("CONGA at aggregation switches", "by hash", "the paper's choose by CONGA, too; how congestion beyond them is told to it is not stated, and CONGA's own has two stages"),
		chosen("aggregation switches", "two above each ToR switch, four ToR switches below each; an intermediate switch sends down to the one of the same number", "VL2's own numbers; weft's spines have no choice on the way down")),
	Mutants:   []papers.Mutant{wholeFlows},
	Decisions: open(byUplinks),
	Run: func(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
		top, err := fabric(o, vl2, vl2Quick)
		if err != nil {
			return nil, err
		}
		g := &grid{loads: []float64{.2, .7}, schemes: fourSchemes}
		arrivals := took(o, 200*time.Millisecond, 5*time.Millisecond)
		if err := g.run(ctx, o, trial{top: top, arrivals: arrivals}); err != nil {
			return nil, err
		}
		out := &papers.Outcome{PacketHops: g.hops(), Settings: durations(arrivals, g)}
		out.Because = because(o, "hosts of 1 Gbit/s hardly make a link of 10 Gbit/s wait, so all schemes are nearly alike; with links up of 1 or 4 Gbit/s from ToR switches DRILL was the best (one seed, a quarter of the time)")
		for _, r := range best(g, []scheme{drill}, []scheme{ecmp, conga, presto}) {
			out.Rows = append(out.Rows, r.Own())
		}
		out.Rows = append(out.Rows, g.means(.2, tail)...)
		out.Rows = append(out.Rows, g.means(.7, tail)...)
		out.Charts = []papers.Chart{g.cdfs("Fig. 10a: load 0.2", .2), g.cdfs("Fig. 10b: load 0.7", .7)}
		return out, nil
	},
}
