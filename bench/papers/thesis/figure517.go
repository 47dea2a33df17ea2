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
			chosen("which virtual queue", "the port's, at 1 Gbit/s, of what the reaction point passes, from the start (\"never\"); beside, from the sixth second on, and the congestion point's",
				"\"the RP virtual queue occupancy never exceeded 40%\", \"in our RP, we chose a virtual queue size of 100KB\"; a bump's virtual queue is that of the port behind (§5.2.1), and one of a flow at its own rate would always be full of flows that do not listen. Our first version judged the congestion point's, by 40 % within 50 and from the sixth second on, and agreed; the thesis' 40 % are a bound"),
			stated("congestion point", "w 1, F_bmax 32, probability from 1 up to 20 %"),
			chosen("F_b", "in 63 levels, the greatest of twice the queue that is sought, all of it new; a message lowers a rate by a 128th for each level", "the standard's; the thesis states neither, but that a rate falls by half at most (§5.3.3)"),
			stated("reaction point", "byte counter only: cycles of 600 packets in fast recovery and of 100 after it, 1.5 Mbit/s each"),
			chosen("reaction point", "drops what exceeds a flow's rate, of which two packets may come at once", "a bump holds no packets (§5.1.1)"),
			chosen("whom it slows", "the flow of the packet that is sampled", "the thesis had to weigh flows by what they have in the queue. Which packet is sampled is by chance, so that a flow that sends more is told more often; in a single message it is not the thesis' weighing"),
			chosen("messages", "100 µs on their way", "some times the racks' links and a bump's 30 µs"),
			chosen("buffer of the port", "100 KB", "that of the virtual queue, which stands for it"),
			chosen("means and drops", "from the sixth second on", "rates begin at 1 Gbit/s each; the figure shows what comes of it"),
		}, testbedSetting[:1]...),
		Mutants:   []papers.Mutant{{Name: "no flow is slowed", About: []string{"QCN"}, Replace: map[string]string{"QCN": ""}}},
		Decisions: []papers.Decision{qcnRecorded, qcnMessages},
		Run:       runFigure517,
	}
}

// qcnRecorded is how often what Fig. 5.17 shows is taken. The thesis says neither that of
// throughput nor that of the virtual queue; its axis is of 20 s. Who looks more rarely sees no higher
// queue, so this moves the measure and not the system.
var qcnRecorded = papers.Decision{
	Parameter: "times at which the virtual queue is recorded", About: []string{"QCN, what the reaction point passes"},
	Against: "\"the virtual queue occupancy never exceeded 40%\" (Fig. 5.17), and its estimate is renewed with every packet (§5.2.1)",
	Values: []papers.DecisionValue{
		{Name: "every millisecond", Replace: map[string]string{"recorded": "0.001"}, Fitted: true},
		{Name: "every 10 ms", Replace: map[string]string{"recorded": "0.01"}, Fitted: true},
		{Name: "every 100 ms", Replace: map[string]string{"recorded": "0.1"}, Fitted: true},
		{Name: "every second", Replace: map[string]string{"recorded": "1"}, Fitted: true},
	},
}

// qcnMessages is what a message takes: a bump takes 30 µs on average, and 208 at most
// (Table 5.2).
var qcnMessages = papers.Decision{
	Parameter: "time of a message", About: []string{"QCN"},
	Ends: "the average of one bump to the most of one (Table 5.2)",
	Values: []papers.DecisionValue{
		{Name: "30 µs", Replace: map[string]string{"message": "30e-6"}},
		{Name: "208 µs", Replace: map[string]string{"message": "208e-6"}},
	},
}

// secondsOf is a time of an experiment, or the one that stands for its name.
func secondsOf(o papers.Options, name string, own time.Duration) time.Duration {
	return time.Duration(valueOf(o, name, own.Seconds()) * float64(time.Second))
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
	early := make([]float64, len(schemes))    // most bytes that had passed before the sixth second
	recorded := make([]float64, len(schemes)) // most bytes at the times of qcnRecorded
	every := secondsOf(o, "recorded", 0)
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
		delay := secondsOf(o, "message", qcnDelay)
		if scheme != "QCN" || o.As(scheme) == "" {
			delay = time.Hour // nobody hears of anything
		}
		b, err := aqm.NewQCN(aqm.QCNConfig{
			Queue: aqm.VirtualQueue{RateMbit: 1000, Room: qcnQueue},
			Point: qcn.Parameters{Target: qcnTarget, Weight: 1, MinP: .01, MaxP: .2, Plateau: 32, Seed: 2*o.Seed + 1},
			Reaction: qcn.Config{
				Floor: 1e6 / 8, Limit: 1e9 / 8, Increase: qcnIncrease, Timer: -1,
				Cycle: 600 * mtu, Active: 100 * mtu,
			},
			LineMbit: 1000, Delay: delay, Burst: 2 * mtu,
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
		c.Queues[1].Manage = func(_, place int) aqm.Discipline {
			if place == sim.EdgeUp {
				return b.Reaction()
			}
			return nil
		}
		c.SampleEvery, c.OnSample = time.Millisecond, func(now time.Duration, v sim.View) {
			if every > 0 && now%every == 0 {
				recorded[i] = max(recorded[i], b.Passed(now))
			}
			if now == warmup {
				early[i] = b.MostPassed()
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
	for i, scheme := range schemes {
		r := results[i]
		out.Rows = append(out.Rows,
			papers.Info(scheme+", what the reaction point passes", "most of the virtual queue after 5 s, %", 100*bumps[i].MostPassed()/qcnQueue),
			papers.Info(scheme+", congestion point", "most of its virtual queue after 5 s, %", 100*bumps[i].Most()/qcnQueue),
			papers.Info(scheme, "mean queue, %", meanOf(queues[i])),
			papers.Info(scheme, "drops at the port, a second", float64(r.Ports[portTo(receiver)].Drops)/(r.End-warmup).Seconds()),
			papers.Info(scheme, "of the link used, %", 100*float64(r.Ports[portTo(receiver)].Bytes)*8/1e9/(r.End-warmup).Seconds()))
		l := papers.Line{Name: scheme}
		for n, q := range queues[i] {
			l.X, l.Y = append(l.X, float64(n)), append(l.Y, q)
		}
		chart.Lines = append(chart.Lines, l)
	}
	most := max(early[1], bumps[1].MostPassed())
	if every > 0 {
		most = recorded[1]
	}
	drops := func(i int) float64 { return float64(results[i].Ports[portTo(receiver)].Drops) }
	out.Rows = append(out.Rows,
		papers.AtMost("QCN, what the reaction point passes", "most of the virtual queue, %", 40, 100*most/qcnQueue, 0),
		papers.Claim("QCN: no drops at the port", drops(1) == 0),
		papers.Order("drops at the port: without > QCN", drops(0), drops(1)),
		papers.Claim("without QCN: 95 % of the port's room and more are taken in every millisecond", leastOf(queues[0]) > 95).Own())
	explain(out, o, "flows of 1 Gbit/s each begin at once, and messages are 100 µs on their way, which we chose: until the first can be heard the virtual queue fills. It lasts less than a millisecond: recorded once in one, or less often, the queue is never above 27 %. What it is after 5 s is in the rows beside")
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
