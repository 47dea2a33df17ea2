package drb

import (
	"context"
	"fmt"
	"slices"

	"weft/bench/papers"
	"weft/bench/sim/slotted"
	"weft/drb"
)

// The rules of the appendix, in its order.
var rules = []struct {
	name string
	rule drb.Rule
}{{"DRB", drb.DigitReversal}, {"RRB", drb.RoundRobin}, {"RB", drb.Random}}

// What the paper states of mean queues at the first hop: by rule at load 0.95, and DRB's at load 1.
var (
	statedMeans = [3]float64{2.2, 16.0, 7.9}
	statedFull  = 2.5
)

func appendixB() papers.Experiment {
	return papers.Experiment{
		Name: "drb-appendix-b", Source: paper + " §3.1.3, Appendix B, Figs. 3 and 4",
		Title: "queues of DRB, RRB and RB at the first three hops, in slots",
		Setting: []papers.Parameter{
			{Name: "fabric", Value: "fat-tree of n-port switches, all of it at once"},
			{Name: "traffic", Value: "permutation, Bernoulli arrivals"},
			{Name: "a queue's length", Value: "q(t) of the appendix's formula: arrivals of the slot and the packet being sent included",
				Chosen: true, Why: "so counted, means and variances of DRB and RRB are the paper's; the bound n/2(n/2-1) is one less, of what waits after a packet has been sent"},
			{Name: "slots", Value: "12,000 after 4,000 unmeasured; in the sweeps 10 million host slots after a third as many",
				Chosen: true, Why: "the paper does not state its own"},
			{Name: "slots of RB's 7.9 and 58", Value: "1,200, from empty queues", Chosen: true,
				Why: "they give the paper's two figures, which are no evidence then; 12,000 slots give a mean of 9.2, as the closed form does"},
			{Name: "packets within a pod", Value: "by way of a core, too", Chosen: true, Why: "as the appendix has it"},
		},
		Mutants:   []papers.Mutant{atRandom},
		Decisions: []papers.Decision{observed},
		Judge:     judgeAppendixB,
		Run:       runAppendixB,
	}
}

// batch is runs to be made together; add says under which number.
type batch struct{ configs []slotted.Config }

func (b *batch) add(c slotted.Config) int {
	b.configs = append(b.configs, c)
	return len(b.configs) - 1
}

// appendixRuns says which run is which.
type appendixRuns struct {
	main, full, aligned [3]int // by rule: load 0.95, load 1, load 1 with equal starts
	fromEmpty           int    // of RB
	growth              []int  // of RB at load 1, each after four times as long as the one before
	byLoad, byPorts     [3][]int
	loads, ports        []float64
}

func planAppendixB(o papers.Options) (batch, appendixRuns) {
	var b batch
	p := appendixRuns{
		loads: []float64{0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1},
		ports: []float64{4, 8, 12, 16, 20, 24, 28, 32},
	}
	slots, sweep := 12000, 10_000_000
	growth := []int{1000, 4000, 16000}
	if o.Quick {
		slots, sweep = 600, 100_000
		p.loads, p.ports, growth = []float64{0.5, 0.95, 1}, []float64{4, 8, 16}, []int{100, 400}
	}
	base := slotted.Config{Ports: 24, Load: 0.95, Hops: 3, Slots: slots, Warmup: slots / 3, Seed: o.Seed}
	for i, r := range rules {
		c := base
		c.Rule = r.rule
		p.main[i] = b.add(c)
		c.Load, c.Slots, c.Warmup = 1, atFullLoad(o, slots/4), slots/8
		p.full[i] = b.add(c)
		c.EqualStarts, c.Slots, c.Warmup, c.Hops = true, 288, 0, 2 // twice through the order
		p.aligned[i] = b.add(c)
		for _, load := range p.loads {
			c := swept(base, sweep)
			c.Rule, c.Load = r.rule, load
			p.byLoad[i] = append(p.byLoad[i], b.add(c))
		}
		for _, n := range p.ports {
			c := base
			c.Ports = int(n)
			c = swept(c, sweep)
			c.Rule = r.rule
			p.byPorts[i] = append(p.byPorts[i], b.add(c))
		}
	}
	c := base
	c.Rule, c.Hops = drb.Random, 1
	c.Slots, c.Warmup = 1200, 0
	p.fromEmpty = b.add(c)
	c.Load, c.Slots = 1, 100
	for _, c.Warmup = range growth {
		p.growth = append(p.growth, b.add(c))
	}
	return b, p
}

// swept has as many slots as make so many of all hosts together.
func swept(c slotted.Config, hostSlots int) slotted.Config {
	c.Slots = min(hostSlots/(c.Ports*c.Ports*c.Ports/4), 50_000)
	c.Warmup = c.Slots / 3
	return c
}

func runAppendixB(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
	b, p := planAppendixB(o)
	for i, c := range b.configs {
		if c.Rule == drb.DigitReversal && o.As("drb") == "rb" {
			b.configs[i].Rule = drb.Random
		}
	}
	results := make([]*slotted.Result, len(b.configs))
	err := papers.Each(ctx, o, len(b.configs), func(i int) (err error) {
		results[i], err = slotted.Run(b.configs[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	out := &papers.Outcome{Rows: p.rows(results), Charts: p.charts(results)}
	for _, r := range results {
		out.PacketHops += r.PacketHops
	}
	if o.Quick {
		out.Settings = []papers.Parameter{{Name: "quick", Value: "a twentieth of the slots, fewer loads and switches"}}
	}
	return out, nil
}

// leastVariance is the order at a hop, counted from 0, which has a reason of its own where it does
// not hold.
func leastVariance(hop int) string { return fmt.Sprintf("variance at hop %d: RRB, RB > DRB", hop+1) }

func judgeAppendixB(rows []papers.Row) (papers.Verdict, string) {
	because := "RB's closed form stands in place of the paper's 7.9, which is what 1,200 slots from empty queues give."
	if i := slices.IndexFunc(rows, func(r papers.Row) bool { return r.Label == leastVariance(1) }); !rows[i].OK {
		because += " At hop 2 RRB's queue is shorter and varies less than DRB's: what has waited at hop 1 arrives evenly there. The paper says that DRB's varies least at every hop."
	}
	return papers.Judge(rows), because
}

func (p *appendixRuns) rows(results []*slotted.Result) []papers.Row {
	first := func(run int) slotted.Lengths { return results[run].Lengths[0] }
	d, rr, rb := first(p.main[0]), first(p.main[1]), first(p.main[2])
	empty := first(p.fromEmpty)
	const (
		mean     = "first hop's mean queue at load 0.95, packets"
		variance = "first hop's variance at load 0.95"
		most     = "first hop's greatest queue at load 1, packets"
	)
	closed := papers.Within("RB, closed form", mean, slotted.FirstHopOfRandom(24, 0.95), rb.Mean(), 3).Own()
	closed.Note = "in place of the paper's 7.9: ρ + (1-2/n)ρ²/2(1-ρ)"
	rows := []papers.Row{
		papers.Within("DRB", mean, statedMeans[0], d.Mean(), papers.Stated),
		papers.Within("DRB", variance, 1.45, d.Variance(), papers.Stated),
		papers.Within("RRB", mean, statedMeans[1], rr.Mean(), papers.Stated),
		papers.Within("RRB", variance, 151, rr.Variance(), papers.Stated),
		closed,
		papers.Within("RB, 1,200 slots from empty", mean, statedMeans[2], empty.Mean(), 10).Fitted(),
		papers.Within("RB, 1,200 slots from empty", variance, 58, empty.Variance(), 10).Fitted(),
		papers.Info("RB", variance, rb.Variance()),
		papers.Order("mean queue at the first hop: RRB > RB > DRB", rr.Mean(), rb.Mean(), d.Mean()),
		papers.Order("mean queues of three hops together: RRB > DRB, RB > DRB", min(sumOfMeans(results[p.main[1]]), sumOfMeans(results[p.main[2]])), sumOfMeans(results[p.main[0]])),
	}
	full, aligned := first(p.full[0]), first(p.aligned[1]).AfterService()
	rows = append(rows, papers.Within("DRB", "first hop's mean queue at load 1, packets", statedFull, full.Mean(), papers.Stated))
	atMost := func(label string, paper float64, ours, bound int) papers.Row {
		r := papers.AtMost(label, most, float64(bound), float64(ours), 0)
		r.Paper = &paper
		r.Note = fmt.Sprintf("OK is within the bound of %d", bound)
		return r
	}
	rows = append(rows,
		papers.Within("DRB", most, 8, float64(full.Max()), papers.Stated),
		atMost("RRB, random starts", 132, first(p.full[1]).AfterService().Max(), 132),
		papers.Within("RRB, equal starts: the worst case", most, 132, float64(aligned.Max()), 0),
		papers.Claim("RB at load 1: after four times as long, 1.6 times the queue or more", grows(p.growth, first)),
	)
	second := results[p.aligned[0]].Lengths[1].AfterService()
	rows = append(rows, papers.Info("DRB, equal starts", "second hop's greatest queue at load 1, packets", float64(second.Max())))
	for hop := range 3 {
		v := [3]float64{}
		for i, rule := range rules {
			l := results[p.main[i]].Lengths[hop]
			v[i] = l.Variance()
			if hop > 0 {
				rows = append(rows,
					papers.Info(rule.name, fmt.Sprintf("hop %d: mean queue at load 0.95, packets", hop+1), l.Mean()),
					papers.Info(rule.name, fmt.Sprintf("hop %d: variance at load 0.95", hop+1), v[i]))
			}
		}
		rows = append(rows, papers.Order(leastVariance(hop), min(v[1], v[2]), v[0]))
	}
	return rows
}

func sumOfMeans(r *slotted.Result) (sum float64) {
	for _, l := range r.Lengths[:3] {
		sum += l.Mean()
	}
	return sum
}

func grows(runs []int, first func(int) slotted.Lengths) bool {
	for i := 1; i < len(runs); i++ {
		if first(runs[i]).Mean() < 1.6*first(runs[i-1]).Mean() {
			return false
		}
	}
	return true
}

func (p *appendixRuns) charts(results []*slotted.Result) []papers.Chart {
	var charts []papers.Chart
	for hop := range 3 {
		load := papers.Chart{Title: fmt.Sprintf("Fig. 3, hop %d: n = 24", hop+1), X: "load", Y: "mean queue, packets"}
		ports := papers.Chart{Title: fmt.Sprintf("Fig. 4, hop %d: load 0.95", hop+1), X: "ports of a switch", Y: "mean queue, packets"}
		for i, rule := range rules {
			line := papers.Line{Name: rule.name}
			for j, run := range p.byLoad[i] {
				if rule.rule == drb.Random && p.loads[j] == 1 {
					continue // grows without end
				}
				line.X = append(line.X, p.loads[j])
				line.Y = append(line.Y, results[run].Lengths[hop].Mean())
			}
			load.Lines = append(load.Lines, line)
			line = papers.Line{Name: rule.name, X: p.ports}
			for _, run := range p.byPorts[i] {
				line.Y = append(line.Y, results[run].Lengths[hop].Mean())
			}
			ports.Lines = append(ports.Lines, line)
		}
		if hop == 0 {
			for i, rule := range rules {
				load.State(rule.name, 0.95, statedMeans[i])
				ports.State(rule.name, 24, statedMeans[i])
			}
			load.State(rules[0].name, 1, statedFull)
		}
		charts = append(charts, load, ports)
	}
	return charts
}
