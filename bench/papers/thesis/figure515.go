package thesis

import (
	"context"
	"slices"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/bench/sim/aqm"
	"weft/bench/sim/workload"
	"weft/topology"
)

const (
	dctcpK      = 20 // packets (thesis §5.3.2)
	requests    = 10_000
	answerBytes = 1000
)

var dctcpSchemes = [...]string{"TCP", "DCTCP"}

// lateMarks is DCTCP of which the bump thinks of a queue that a port never has. One that halves
// its window for a mark, as RFC 3168 has it, is none: its answers are as short (tried once).
var lateMarks = papers.Mutant{Name: "the bump marks beyond 2,000 packets", About: []string{"DCTCP"}, Replace: map[string]string{"K": "2000"}}

// withDCTCP has a bump mark for DCTCP, and hosts understand it.
func withDCTCP(o papers.Options, c *sim.Config, place int) {
	c.TCP.DCTCP = true
	managed(c, place, func() aqm.Discipline {
		return &aqm.Threshold{VirtualQueue: aqm.VirtualQueue{RateMbit: 1000, Room: testbedBuffer}, Bytes: int(valueOf(o, "K", dctcpK)) * mtu}
	})
}

func figure515() papers.Experiment {
	return papers.Experiment{
		Name: "thesis-f5.15", Source: "thesis §5.5.3, Fig. 5.15",
		Title: "10,000 short answers beside two elephants: DCTCP by a bump, and TCP",
		Setting: append([]papers.Parameter{
			stated("traffic", "two elephants, and 10,000 requests of RPC"),
			stated("DCTCP", "marks beyond 20 packets of instantaneous queue"),
			chosen("answers", "1,000 bytes each, from a third host to the elephants' receiver, at random times within 20 s", "not stated; the requests themselves go the other way, where nothing waits"),
		}, testbedSetting...),
		Mutants: []papers.Mutant{lateMarks},
		Run:     runFigure515,
	}
}

func runFigure515(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
	const receiver = topology.NodeID(rackSize)
	out := &papers.Outcome{}
	duration := shorter(o, out, 20*time.Second)
	ms := make([][]float64, len(dctcpSchemes))
	configs := make([]sim.Config, len(dctcpSchemes))
	for i, scheme := range dctcpSchemes {
		c, err := testbedConfig(o, twoRacks, duration+time.Second)
		if err != nil {
			return nil, err
		}
		background, err := elephants(2, func(int) topology.NodeID { return receiver }, 2, time.Millisecond)
		if err != nil {
			return nil, err
		}
		begin := duration / 20
		short, err := workload.NewPoisson(workload.PoissonConfig{
			Senders: []topology.NodeID{2}, To: workload.Among([]topology.NodeID{receiver}), Sizes: workload.Fixed(answerBytes),
			PerSecond: requests / (20 * time.Second).Seconds(), From: begin, Until: begin + duration, Class: 1, Seed: o.Seed,
		})
		if err != nil {
			return nil, err
		}
		c.Workload = workload.Merge(background, short)
		c.OnFlow = func(e sim.FlowEnd) { ms[i] = append(ms[i], float64(e.FCT)/1e6) }
		if scheme == "DCTCP" {
			withDCTCP(o, &c, sim.EdgeDown)
		}
		configs[i] = c
	}
	results, err := papers.Sweep(ctx, o, configs)
	if err != nil {
		return nil, err
	}
	out.PacketHops = papers.Hops(results)
	chart := papers.Chart{Title: "Fig. 5.15", X: "ms", Y: "share of answers", LogX: true}
	for i, scheme := range dctcpSchemes {
		slices.Sort(ms[i])
		chart.Lines = append(chart.Lines, papers.CDF(scheme, ms[i]))
		out.Rows = append(out.Rows, papers.Info(scheme, "answers", float64(len(ms[i]))))
	}
	for _, p := range []struct {
		name string
		part float64
	}{{"median", .5}, {"90th percentile", .9}, {"99th percentile", .99}} {
		var times []float64
		for i, scheme := range dctcpSchemes {
			times = append(times, quantile(ms[i], p.part))
			out.Rows = append(out.Rows, papers.Info(scheme, p.name+", ms", times[i]))
		}
		out.Rows = append(out.Rows, papers.Order(p.name+": TCP > DCTCP", times...))
	}
	out.Charts = []papers.Chart{chart}
	return out, nil
}
