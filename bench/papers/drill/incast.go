package drill

import (
	"context"
	"fmt"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/bench/sim/workload"
	"weft/topology"
)

// How incast is (§4), and how often, which is not stated.
const (
	incastPart  = 10 // one of so many hosts asks, one of so many answers
	incastBytes = 10_000
	incastEvery = 2 * time.Millisecond
)

// byHowOften is how often hosts ask.
var byHowOften = papers.Decision{
	Parameter: "how often hosts ask", About: []string{"DRILL", "FCT"},
	Ends: "from each half millisecond, which adds a third to the stated load, to once in the run",
	Values: []papers.DecisionValue{
		as(incastEvery.String(), "500µs"), as(incastEvery.String(), "1ms"), as(incastEvery.String(), "5ms"), as(incastEvery.String(), "40ms"),
	},
}

// asked has a tenth of the hosts ask a tenth of the others each, all at once, every
// incastEvery on average.
func asked(o papers.Options, t *topology.Topology, arrivals time.Duration) func(seed uint64) (workload.Source, error) {
	return func(seed uint64) (workload.Source, error) {
		every, err := time.ParseDuration(o.As(incastEvery.String()))
		if err != nil {
			return nil, err
		}
		n := max(1, t.NumHosts()/incastPart)
		times := max(1, int(arrivals/every))
		return workload.NewIncast(workload.IncastConfig{
			Hosts: workload.Hosts(t), Servers: n, Bytes: int64(n) * incastBytes,
			Jobs: n * times, Together: n, Until: arrivals, Class: 1, Seed: seed,
		})
	}
}

var incast = papers.Experiment{
	Name: "drill-f14", Source: "DRILL §4, Fig. 14", Decisions: open(byHowOften),
	Title: "incast over traffic of 20 %: DRILL turns bursts away from crowded ports at once",
	Setting: traced(stated("fabric", scaledUp), stated("incast", "10 % of the hosts each ask 10 % of the others for 10 KB, at once"),
		chosen("how often", fmt.Sprintf("every %v on average", incastEvery), "not stated")),
	Run: func(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
		top, err := fabric(o, scaledUp, scaledUpQuick)
		if err != nil {
			return nil, err
		}
		g := &grid{loads: []float64{.2, .35}, schemes: []scheme{ecmp, conga, presto, drill, drill.bare()}}
		arrivals := took(o, 40*time.Millisecond, 3*time.Millisecond)
		if err := g.run(ctx, o, trial{top: top, arrivals: arrivals, besides: asked(o, top, arrivals)}); err != nil {
			return nil, err
		}
		const load = .2
		beside := &grid{loads: []float64{load}, schemes: []scheme{conga, presto, drill}}
		if err := beside.run(ctx, o, trial{top: top, arrivals: arrivals, besides: asked(o, top, arrivals), deep: true}); err != nil {
			return nil, err
		}
		out := &papers.Outcome{PacketHops: g.hops() + beside.hops(), Settings: durations(arrivals, g)}
		drops := func(f *flows) float64 { return float64(f.result.Places[sim.EdgeUp].Drops) }
		least := func(of func(*flows) float64) bool {
			d := of(g.at(load, drill))
			return papers.Above(min(of(g.at(load, presto)), of(g.at(load, conga)), of(g.at(load, ecmp))), d)
		}
		out.Rows = []papers.Row{
			g.below(load, drill, conga, "FCT p99.99, quotient", tailOf, 2.1),
			g.below(load, drill, presto, "FCT p99.99, quotient", tailOf, 2.6),
			papers.Order("FCT p99.99 at load 0.2: Presto > CONGA > DRILL", tailOf(g.at(load, presto)), tailOf(g.at(load, conga)), tailOf(g.at(load, drill))),
			papers.Sign("DRILL waits least at hop 1", least(firstHop)),
			papers.Sign("DRILL drops least at hop 1", least(drops)),
			shim(g, load, drill),
		}
		out.Rows = append(out.Rows, g.means(load, tail)...)
		for _, s := range beside.schemes {
			out.Rows = append(out.Rows, papers.Info(fmt.Sprintf("%s, load %v, %d frames", s.name, load, deep), "FCT p99.99, µs", tailOf(beside.at(load, s))))
		}
		for _, s := range g.schemes {
			f := g.at(load, s)
			for i, place := range []int{sim.EdgeUp, sim.AggDown, sim.EdgeDown} {
				hop := fmt.Sprintf("%s, load %v, hop %d", s.name, load, i+1)
				out.Rows = append(out.Rows, papers.Info(hop, "mean wait, µs", f.wait(place)),
					papers.Info(hop, "drops", float64(f.result.Places[place].Drops)))
			}
		}
		out.Because = because(o, "32 answers at once overflow the last hop by every scheme, so p99.99 is two timeouts; with queues of 1,000 frames nothing is lost, and the last hop decides for all alike. At the first hop DRILL waits least, as in the paper, but at this load nobody drops anything there")
		out.Charts = []papers.Chart{g.cdfs("Fig. 14a: load 0.2", .2), g.cdfs("Fig. 14b: load 0.35", .35)}
		return out, nil
	},
}
