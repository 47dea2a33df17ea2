package thesis

import (
	"context"
	"fmt"
	"slices"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/bench/sim/aqm"
	"weft/topology"
)

// RED of thesis §5.3.1. The figure's two max_p are in its legend only.
const (
	redMin, redMax = 20 * mtu, 60 * mtu
	redWeight      = 0.1
	redFlows       = 5
)

var redSchemes = []struct {
	name string
	maxP float64 // 0: drop-tail
}{{"drop-tail", 0}, {"RED, max_p 0.1", .1}, {"RED, max_p 0.5", .5}}

func figure514() papers.Experiment {
	return papers.Experiment{
		Name: "thesis-f5.14", Source: "thesis §5.5.3, Fig. 5.14",
		Title: "RED in a bump keeps the queue behind it shorter, the more it marks",
		Setting: append([]papers.Parameter{
			stated("RED", "thresholds of 20 and 60 packets, w_q 0.1"),
			chosen("max_p", "0.1 and 0.5", "the figure's two are not in the text"),
			chosen("traffic", "5 flows without end from one rack to a host of the other, 10 s", "the thesis: a set of flows"),
			chosen("chosen packets", "are marked, and TCP understands marks", "§5.3.1 marks or drops; the figure's text speaks of marks"),
		}, testbedSetting...),
		Mutants: []papers.Mutant{
			{Name: "RED's thresholds are 100 times as high", About: []string{"RED"}, Replace: map[string]string{"thresholds": "100"}},
			{Name: "RED's max_p are a hundredth", About: []string{"RED"}, Replace: map[string]string{"max_p": "0.01"}},
		},
		Run: runFigure514,
	}
}

func runFigure514(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
	const receiver = topology.NodeID(rackSize)
	out := &papers.Outcome{}
	duration := shorter(o, out, 10*time.Second)
	queues := make([][]float64, len(redSchemes)) // KB
	configs := make([]sim.Config, len(redSchemes))
	for i, s := range redSchemes {
		c, err := testbedConfig(o, twoRacks, duration)
		if err != nil {
			return nil, err
		}
		c.Warmup = duration / 10
		if c.Workload, err = elephants(redFlows, func(int) topology.NodeID { return receiver }, redFlows, time.Millisecond); err != nil {
			return nil, err
		}
		c.TCP.ECN = true
		c.SampleEvery, c.OnSample = 100*time.Microsecond, func(_ time.Duration, v sim.View) {
			queues[i] = append(queues[i], float64(v.QueueBytes(portTo(receiver)))/1e3)
		}
		if s.maxP > 0 {
			red := aqm.REDConfig{
				Queue: aqm.VirtualQueue{RateMbit: 1000, Room: testbedBuffer},
				Min:   redMin * int(valueOf(o, "thresholds", 1)), Max: redMax * int(valueOf(o, "thresholds", 1)),
				MaxP: s.maxP * valueOf(o, "max_p", 1), Weight: redWeight, Mark: true, Seed: o.Seed,
			}
			if _, err := aqm.NewRED(red); err != nil {
				return nil, err
			}
			managed(&c, sim.EdgeDown, func() aqm.Discipline {
				r, _ := aqm.NewRED(red) // is right, as seen above
				return r
			})
		}
		configs[i] = c
	}
	results, err := papers.Sweep(ctx, o, configs)
	if err != nil {
		return nil, err
	}
	out.PacketHops = papers.Hops(results)
	chart := papers.Chart{Title: "Fig. 5.14", X: "queue, KB", Y: "share of time", LogX: true}
	mean, late := make([]float64, len(redSchemes)), make([]float64, len(redSchemes))
	for i, s := range redSchemes {
		slices.Sort(queues[i])
		mean[i], late[i] = meanOf(queues[i]), quantile(queues[i], .95)
		out.Rows = append(out.Rows,
			papers.Info(s.name, "mean queue, KB", mean[i]),
			papers.Info(s.name, "95th percentile of the queue, KB", late[i]),
			papers.Info(s.name, "goodput, Mbit/s", float64(results[i].DeliveredBytes[receiver])*8/1e6/(duration-duration/10).Seconds()))
		chart.Lines = append(chart.Lines, papers.CDF(s.name, queues[i]))
	}
	out.Rows = append(out.Rows,
		papers.Order(fmt.Sprintf("mean queue: %s > %s > %s", redSchemes[0].name, redSchemes[1].name, redSchemes[2].name), mean...),
		papers.Order(fmt.Sprintf("95th percentile of the queue: %s > %s", redSchemes[0].name, redSchemes[1].name), late[:2]...))
	out.Charts = []papers.Chart{chart}
	return out, nil
}

func meanOf(values []float64) float64 { return total(values) / float64(max(len(values), 1)) }

// quantile is of values that are sorted.
func quantile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return values[min(int(p*float64(len(values))), len(values)-1)]
}
