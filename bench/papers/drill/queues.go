package drill

import (
	"context"
	"fmt"
	"math"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/topology"
)

// samplePeriod is the paper's (§3.2.3).
const samplePeriod = 10 * time.Microsecond

// spreads is how unequal queues are: means of the standard deviations, in frames,
// of the queues up from a leaf, and of those down to it.
type spreads struct {
	ups, downs [][]int // ports, by leaf
	up, down   float64
	samples    int
}

func newSpreads(t *topology.Topology) *spreads {
	s := &spreads{}
	for n := range t.Nodes() {
		if n.Layer != topology.LayerEdge {
			continue
		}
		var up, down []int
		for _, p := range t.Ports(n.ID) {
			if p.Up {
				up, down = append(up, 2*int(p.Link)), append(down, 2*int(p.Link)+1)
			}
		}
		s.ups, s.downs = append(s.ups, up), append(s.downs, down)
	}
	return s
}

func (s *spreads) sample(v sim.View) {
	for i := range s.ups {
		s.up += deviation(s.ups[i], v)
		s.down += deviation(s.downs[i], v)
	}
	s.samples += len(s.ups)
}

func (s *spreads) meanUp() float64   { return s.up / float64(max(1, s.samples)) }
func (s *spreads) meanDown() float64 { return s.down / float64(max(1, s.samples)) }

// deviation is the standard deviation of ports' queues, in frames, of which the one on
// the wire does not count.
func deviation(ports []int, v sim.View) float64 {
	sum, squares := 0.0, 0.0
	for _, p := range ports {
		q := float64(max(0, (v.QueueBytes(p)-1)/frameBytes))
		sum += q
		squares += q * q
	}
	n := float64(len(ports))
	return math.Sqrt(max(0, squares/n-sum/n*sum/n))
}

// measureQueues runs schemes at a load and returns how unequal queues are.
func measureQueues(ctx context.Context, o papers.Options, top *topology.Topology, load float64, time time.Duration, schemes []scheme) ([]*spreads, []*sim.Result, error) {
	all, configs := make([]*spreads, len(schemes)), make([]sim.Config, len(schemes))
	for i, s := range schemes {
		c := network(o.Seed, top, s)
		c.Duration, c.Warmup = time, time/warm
		var err error
		if c.Workload, err = between(top, traffic{anyToAny, sizes, alone}, load, time, o.Seed); err != nil {
			return nil, nil, err
		}
		all[i] = newSpreads(top)
		c.SampleEvery = samplePeriod
		c.OnSample = sampler(all[i])
		configs[i] = c
	}
	results, err := papers.Sweep(ctx, o, configs)
	return all, results, err
}

func sampler(s *spreads) func(time.Duration, sim.View) {
	return func(_ time.Duration, v sim.View) { s.sample(v) }
}

func queueTime(o papers.Options) time.Duration { return took(o, 2*time.Millisecond, time.Millisecond) }

var balance = papers.Experiment{
	Name: "drill-f2", Source: "DRILL §3.2.3, Fig. 2", Decisions: []papers.Decision{speaking(byBlindness, "48 engines")},
	Title:   "48 spines, 48 leaves, 2,304 hosts: a choice and a memory keep queues equal",
	Setting: setting(stated("fabric", large), chosen("rates", "10 Gbit/s", "not stated"), queueLength, engineView),
	Run: func(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
		top, err := fabric(o, large, largeQuick)
		if err != nil {
			return nil, err
		}
		one, many := drill.with(2, 1, 1), drill.with(2, 1, 48)
		schemes := []scheme{ecmp, random, roundR, one, many, roundR.inEngines(48)}
		out := &papers.Outcome{Settings: []papers.Parameter{queueParameter(o)}}
		high, r, err := measureQueues(ctx, o, top, .8, queueTime(o), schemes)
		if err != nil {
			return nil, err
		}
		out.PacketHops += papers.Hops(r)
		low, r, err := measureQueues(ctx, o, top, .3, queueTime(o), schemes)
		if err != nil {
			return nil, err
		}
		out.PacketHops += papers.Hops(r)
		out.Rows = append(claimsUp(high, low), claimsDown(high, low)...)
		out.Because = because(o, "at the queues up from leaves, where DRILL decides, its gains are the paper's with one engine; with 48 they are less, since in our reading of §3.2.1 engines know nothing of one another's packets for 1.2 µs. RR with one turn for a whole switch is nearly perfect where packets are of one size. No scheme changes the queues down to leaves, ECMP apart: where packets of many leaves meet nobody chooses")
		for _, m := range []struct {
			load string
			of   []*spreads
		}{{"0.8", high}, {"0.3", low}} {
			out.Rows = append(out.Rows, spreadRows(m.load, schemes, m.of)...)
			out.Charts = append(out.Charts, spreadBars("Fig. 2: load "+m.load, schemes, m.of))
		}
		return out, nil
	},
}

// What both experiments had to choose.
var (
	queueLength = chosen("queue lengths", "in frames of 1,500 bytes, the one on the wire left out; means of the standard deviations up from and down to each leaf, apart",
		"the paper calls queues below 1 empty, and does not say whether its means are of those up, down or both")
	engineView = chosen("what an engine sees", "its own latest packets at once, others' once they would have been transferred at the port's rate",
		"the paper: not what is just entering, until it is fully enqueued")
)

// Schemes of drill-f2, by place in their list.
const (
	atECMP = iota
	atRandom
	atRR
	atOne  // DRILL of one engine
	atMany // and of 48
	atManyRR
)

// gain is by how many percent a figure falls. Queues that are always equal, as in the small
// form, count as nearly so.
func gain(s []*spreads, of func(*spreads) float64, from, to int) float64 {
	const nearly = 1e-6
	return -papers.Change(max(nearly, of(s[from])), of(s[to]))
}

// claimsUp are the paper's claims for the queues up from leaves. The paper measures
// those down to them as well and does not say whose mean it states.
func claimsUp(high, low []*spreads) []papers.Row {
	const metric = "STDV of queues up, gain, %"
	up := (*spreads).meanUp
	return []papers.Row{
		papers.AtLeast("DRILL, 1 engine, on Random, load 0.8", metric, 65, gain(high, up, atRandom, atOne), 0),
		papers.AtLeast("DRILL, 48 engines, on Random, load 0.8", metric, 65, gain(high, up, atRandom, atMany), 0),
		papers.Within("Random on ECMP, load 0.8", metric, 94, gain(high, up, atECMP, atRandom), ratioTolerance),
		papers.AtLeast("DRILL, 1 engine, on Random, load 0.3", metric, 75, gain(low, up, atRandom, atOne), 0),
		papers.AtLeast("DRILL, 1 engine, on RR, load 0.3", metric, 75, gain(low, up, atRR, atOne), 0),
		papers.Within("DRILL, 48 engines, on Random, load 0.3", metric, 20, gain(low, up, atRandom, atMany), ratioTolerance),
		papers.Within("DRILL, 48 engines, on RR, load 0.3", metric, 20, gain(low, up, atManyRR, atMany), ratioTolerance),
		papers.Order("STDV up at load 0.8: ECMP > Random > DRILL, 48 engines > DRILL, 1 engine",
			up(high[atECMP]), up(high[atRandom]), up(high[atMany]), up(high[atOne])),
		papers.Order("STDV up at load 0.8: Random > RR > DRILL, 1 engine", up(high[atRandom]), up(high[atRR]), up(high[atOne])),
		papers.Order("STDV up at load 0.8: RR, 48 engines > DRILL, 48 engines", up(high[atManyRR]), up(high[atMany])),
		papers.Order("STDV up at load 0.3: ECMP > Random > DRILL, 48 engines > DRILL, 1 engine",
			up(low[atECMP]), up(low[atRandom]), up(low[atMany]), up(low[atOne])),
		papers.Order("STDV up at load 0.3: RR > DRILL, 1 engine", up(low[atRR]), up(low[atOne])),
		papers.Order("STDV up at load 0.3: RR, 48 engines > DRILL, 48 engines", up(low[atManyRR]), up(low[atMany])),
	}
}

// claimsDown are those for the queues down.
func claimsDown(high, low []*spreads) []papers.Row {
	const metric = "STDV of queues down, gain, %"
	down := (*spreads).meanDown
	return []papers.Row{
		papers.AtLeast("DRILL, 1 engine, on Random, load 0.8", metric, 65, gain(high, down, atRandom, atOne), 0),
		papers.Within("Random on ECMP, load 0.8", metric, 94, gain(high, down, atECMP, atRandom), ratioTolerance),
		papers.AtLeast("DRILL, 1 engine, on Random, load 0.3", metric, 75, gain(low, down, atRandom, atOne), 0),
	}
}

func queueParameter(o papers.Options) papers.Parameter {
	return chosen("time", fmt.Sprintf("%v a run, a quarter of it not counted", queueTime(o)), "the paper's 100 s are 50,000 times as long, more than a run may take here")
}

func spreadRows(load string, schemes []scheme, all []*spreads) (rows []papers.Row) {
	for i, s := range schemes {
		rows = append(rows,
			papers.Info(s.name+", load "+load, "STDV of queues up, frames", all[i].meanUp()),
			papers.Info(s.name+", load "+load, "STDV of queues down, frames", all[i].meanDown()))
	}
	return rows
}

func spreadBars(title string, schemes []scheme, all []*spreads) papers.Chart {
	c := papers.Chart{Title: title, X: "scheme", Y: "mean STDV of queues up, frames"}
	for i, s := range schemes {
		c.Bars = append(c.Bars, papers.Bar{Name: s.name, Ours: all[i].meanUp()})
	}
	return c
}

var pitfalls = papers.Experiment{
	Name: "drill-f3", Source: "DRILL §3.2.3, Fig. 3",
	Title:     "48 engines a switch at 80 % load: too many choices make engines run to the same queue",
	Decisions: []papers.Decision{byBlindness},
	Setting: setting(stated("fabric", large), chosen("rates", "10 Gbit/s", "not stated"), queueLength, engineView,
		chosen("DRILL(d,m)", "d samples, m memories, as §3.2.2 defines it; (2,1) and (20,1) beside", "the text calls what grows in Fig. 3's (1,2) and (1,20) choices")),
	Run: func(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
		top, err := fabric(o, large, largeQuick)
		if err != nil {
			return nil, err
		}
		schemes := []scheme{drill.with(1, 1, 48), drill.with(1, 2, 48), drill.with(1, 20, 48), drill.with(2, 1, 48), drill.with(20, 1, 48)}
		all, r, err := measureQueues(ctx, o, top, .8, queueTime(o), schemes)
		if err != nil {
			return nil, err
		}
		change := func(to int) float64 { return papers.Change(all[0].meanUp(), all[to].meanUp()) }
		const metric = "STDV of queues up, change on (1,1), %"
		out := &papers.Outcome{PacketHops: papers.Hops(r), Settings: []papers.Parameter{queueParameter(o)}}
		out.Rows = append([]papers.Row{
			papers.Within("DRILL(1,2)", metric, -11, change(1), ratioTolerance),
			papers.Within("DRILL(1,20)", metric, 8, change(2), ratioTolerance),
			papers.Order("STDV up: (1,20) > (1,1) > (1,2)", all[2].meanUp(), all[0].meanUp(), all[1].meanUp()),
			papers.Order("STDV up: (1,20) > (1,2)", all[2].meanUp(), all[1].meanUp()),
			papers.Info("DRILL(2,1)", metric, change(3)),
			papers.Info("DRILL(20,1)", metric, change(4)),
		}, spreadRows("0.8", schemes, all)...)
		out.Because = because(o, "how far (1,2) is below (1,1) depends on for how long engines are blind to each other, and is the paper's 11 % between 0.3 and 0.5 µs; (1,20) was above (1,2) up to 0.6 µs, and 8 % above (1,1) between 0.4 and 0.6 µs, of which see the decision; below it if an engine does not see its own packets either (tried once, with one seed)")
		out.Charts = []papers.Chart{spreadBars("Fig. 3", schemes, all)}
		return out, nil
	},
}

// byBlindness is for how long engines are blind to each other: with the setting's 10 Gbit/s
// a frame's 1.2 µs.
var byBlindness = papers.Decision{
	Parameter: "for how long engines do not see one another's packets", About: []string{"DRILL", "STDV"},
	Ends: "from not at all to the time of ten frames; the paper calls it \"until after they are being fully enqueued\"; 400 ns was added between two that were tried",
	Values: []papers.DecisionValue{
		blind(time.Nanosecond), blind(300 * time.Nanosecond), fitted(blind(400 * time.Nanosecond)), blind(600 * time.Nanosecond), blind(2400 * time.Nanosecond),
		blind(4800 * time.Nanosecond), blind(12 * time.Microsecond),
	},
}

func blind(d time.Duration) papers.DecisionValue {
	return papers.DecisionValue{Name: d.String(), Tune: func(c *sim.Config) { c.Spray.DrillBlind = d }}
}
