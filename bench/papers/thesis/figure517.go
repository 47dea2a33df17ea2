package thesis

import (
	"context"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/bench/sim/aqm"
	"weft/internal/qcn"
	"weft/topology"
)

// QCN of thesis §5.5.3.
const (
	qcnQueue    = 100_000
	qcnTarget   = 20_000
	qcnFlows    = 3
	qcnIncrease = 1.5e6 / 8
	qcnDelay    = 100 * time.Microsecond
)

func figure517() papers.Experiment {
	return papers.Experiment{
		Name: "thesis-f5.17", Source: "thesis §5.5.3, Fig. 5.17",
		Title: "three flows of 1 Gbit/s without feedback on one link: QCN between two bumps",
		Setting: append([]papers.Parameter{
			stated("traffic", "three UDP flows of 1 Gbit/s to one port of 1 Gbit/s, 15 s"),
			stated("virtual queue", "100 KB, of which 20 are sought"),
			stated("congestion point", "w 1, F_bmax 32, probability up to 20 %"),
			stated("reaction point", "byte counter only: cycles of 600 packets in fast recovery and of 100 after it, 1.5 Mbit/s each"),
			chosen("reaction point", "drops what exceeds a flow's rate, of which two packets may come at once", "a bump holds no packets (§5.1.1)"),
			chosen("whom it slows", "the flow of the packet that is sampled", "the thesis weighs flows by what they have in the queue; flows of one rate have the same"),
			chosen("messages", "100 µs on their way", "some times the racks' links and a bump's 30 µs"),
			chosen("buffer of the port", "100 KB", "that of the virtual queue, which stands for it"),
			chosen("measured", "from the sixth second on", "rates begin at 1 Gbit/s each; the figure shows what comes of it"),
		}, testbedSetting[:1]...),
		Mutants: []papers.Mutant{{Name: "no flow is slowed", About: []string{"QCN"}, Replace: map[string]string{"QCN": ""}}},
		Run:     runFigure517,
	}
}

func runFigure517(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
	const receiver = topology.NodeID(rackSize)
	out := &papers.Outcome{}
	warmup, duration := 5*time.Second, shorter(o, out, 15*time.Second)
	if o.Quick {
		warmup = time.Second
	}
	schemes := [...]string{"without", "QCN"}
	bumps := make([]*aqm.QCN, len(schemes))
	queues := make([][]float64, len(schemes)) // % of the virtual queue
	configs := make([]sim.Config, len(schemes))
	for i, scheme := range schemes {
		c, err := testbedConfig(o, twoRacks, duration)
		if err != nil {
			return nil, err
		}
		c.Warmup = warmup
		c.Queues[0].Bytes = qcnQueue
		c.OpenLoop = &sim.OpenLoop{Load: 1, PacketBytes: mtu, Slotted: true}
		for h := range topology.NodeID(c.Topology.NumHosts()) {
			to := h // sends nothing
			if h < qcnFlows {
				to = receiver
			}
			c.OpenLoop.To = append(c.OpenLoop.To, to)
		}
		b, err := aqm.NewQCN(aqm.QCNConfig{
			Queue: aqm.VirtualQueue{RateMbit: 1000, Room: qcnQueue},
			Point: qcn.Parameters{Target: qcnTarget, Weight: 1, MinP: .01, MaxP: .2, Plateau: 32, Seed: 2*o.Seed + 1},
			Reaction: qcn.Config{
				Floor: 1e6 / 8, Limit: 1e9 / 8, Increase: qcnIncrease, Timer: -1,
				Cycle: 600 * mtu, Active: 100 * mtu,
			},
			LineMbit: 1000, Delay: qcnDelay, Burst: 2 * mtu,
		})
		if err != nil {
			return nil, err
		}
		bumps[i] = b
		c.Queues[0].Manage = func(port, _ int) aqm.Discipline {
			if port == portTo(receiver) {
				return b.Congestion()
			}
			return nil
		}
		if scheme == "QCN" && o.As(scheme) != "" {
			c.Queues[1].Manage = func(_, place int) aqm.Discipline {
				if place == sim.EdgeUp {
					return b.Reaction()
				}
				return nil
			}
		}
		c.SampleEvery, c.OnSample = time.Millisecond, func(now time.Duration, v sim.View) {
			if now == warmup {
				b.Forget()
			}
			queues[i] = append(queues[i], 100*float64(v.QueueBytes(portTo(receiver)))/qcnQueue)
		}
		configs[i] = c
	}
	results, err := papers.Sweep(ctx, o, configs)
	if err != nil {
		return nil, err
	}
	out.PacketHops = papers.Hops(results)
	chart := papers.Chart{Title: "Fig. 5.17", X: "ms", Y: "queue, % of 100 KB"}
	most := make([]float64, len(schemes))
	for i, scheme := range schemes {
		r := results[i]
		most[i] = 100 * bumps[i].Most() / qcnQueue
		out.Rows = append(out.Rows,
			papers.Info(scheme, "mean queue, %", meanOf(queues[i])),
			papers.Info(scheme, "drops at the port, a second", float64(r.Ports[portTo(receiver)].Drops)/(r.End-warmup).Seconds()),
			papers.Info(scheme, "of the link used, %", 100*float64(r.Ports[portTo(receiver)].Bytes)*8/1e9/(r.End-warmup).Seconds()))
		l := papers.Line{Name: scheme}
		for n, q := range queues[i] {
			l.X, l.Y = append(l.X, float64(n)), append(l.Y, q)
		}
		chart.Lines = append(chart.Lines, l)
	}
	drops := func(i int) float64 { return float64(results[i].Ports[portTo(receiver)].Drops) }
	out.Rows = append(out.Rows,
		papers.Within("QCN", "most of the virtual queue, %", 40, most[1], papers.Plotted),
		papers.Claim("QCN: no drops at the port", drops(1) == 0),
		papers.Claim("without QCN: the port drops in every millisecond", leastOf(queues[0]) > 95),
		papers.Order("most of the virtual queue: without > QCN", most...))
	out.Charts = []papers.Chart{chart}
	return out, nil
}

// leastOf is 0 of none.
func leastOf(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	least := values[0]
	for _, v := range values {
		least = min(least, v)
	}
	return least
}
