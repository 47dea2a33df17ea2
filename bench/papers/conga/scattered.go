package conga

import (
	"context"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/topology"
)

// f16 is a fabric with many failures.
func f16() papers.Experiment {
	return papers.Experiment{
		Name: "conga-f16", Source: "CONGA §5.5, Fig. 16",
		Title: "9 of 54 links have failed, web search traffic at load 0.6: queues of the spines' links down are about 10 times longer with ECMP",
		Setting: simulated(webSearch.parameter(), parallelLinks,
			papers.Parameter{Name: "fabric", Value: "6 leaves with 48 hosts of 10 Gbit/s, 3 spines, 3 links of 40 Gbit/s between each two"},
			papers.Parameter{Name: "failed", Value: "9 links drawn with the seed", Chosen: true, Why: "random in the paper; those beside a failed one matter, and are found by ECMP's queues"}),
		Decisions: []papers.Decision{buffers("ECMP", "CONGA"), windows("ECMP", "CONGA")},
		Run:       runScattered,
	}
}

var scatteredTimes = times{20 * time.Millisecond, 100 * time.Millisecond, 0}

// queuesEvery is between looks at all queues.
const queuesEvery = 100 * time.Microsecond

func runScattered(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
	tm, hosts, extra := scatteredTimes, 48, []papers.Parameter{scatteredTimes.parameter()}
	if o.Quick {
		// With fewer hosts the links between switches have nothing to do.
		tm = times{time.Millisecond, 4 * time.Millisecond, 0}
		extra = []papers.Parameter{tm.parameter()}
	}
	fabric, err := scattered(hosts, 9, o.Seed)
	if err != nil {
		return nil, err
	}
	base := run{fabric: fabric, initial: simulatedInitial, traffic: webSearch, times: tm}
	runs := base.of([]string{ecmp, conga, wcmp, host, drb}, []float64{0.6})
	means := make([]*queueMeans, len(runs))
	results, err := play(ctx, o, runs, func(i int, c *sim.Config) {
		means[i] = &queueMeans{total: make([]float64, 2*fabric.NumLinks())}
		c.SampleEvery, c.OnSample = queuesEvery, means[i].sample
	})
	if err != nil {
		return nil, err
	}
	out := &papers.Outcome{Settings: extra, PacketHops: hops(results)}
	if !o.Quick {
		out.Because = "which links fail is not stated"
	}
	up, down := fabricPorts(fabric.Topology)
	hot, worst := 0, -1.0
	for _, p := range down {
		if q := means[0].mean(p); q > worst {
			hot, worst = p, q
		}
	}
	// A queue that is empty on average holds less than a byte.
	ratio := worst / max(means[1].mean(hot), 1)
	out.Settings = append(out.Settings, papers.Parameter{Name: "ECMP's longest queue", Value: fabric.LinkName(topology.LinkID(hot/2)) + ", down"})
	out.Rows = append(out.Rows,
		papers.Within("ECMP by CONGA, the spine's link down with ECMP's longest queue", "ratio of mean queues", 10, ratio, aboutPercent),
		papers.Order("mean queue of all spines' links down: ECMP > CONGA", means[0].over(down), means[1].over(down)),
	)
	upward, downward := means[0].over(up)/max(means[1].over(up), 1), means[0].over(down)/max(means[1].over(down), 1)
	out.Rows = append(out.Rows, papers.Order("ECMP's queues by CONGA's: spines' links down > leaves' up", downward, upward))
	for i, r := range results {
		out.Rows = append(out.Rows,
			papers.Info(labelOf(r.policy), "mean queue of leaves' links up, KB", means[i].over(up)/1e3),
			papers.Info(labelOf(r.policy), "mean queue of spines' links down, KB", means[i].over(down)/1e3),
			papers.Info(labelOf(r.policy), "mean queue where ECMP's is longest, KB", means[i].mean(hot)/1e3))
	}
	for _, part := range []struct {
		title string
		ports []int
	}{{"Leaves' links up", up}, {"Spines' links down", down}} {
		chart := papers.Chart{Title: part.title, X: "link", Y: "mean queue, KB"}
		for i, r := range results {
			line := papers.Line{Name: labelOf(r.policy)}
			for n, p := range part.ports {
				line.X, line.Y = append(line.X, float64(n+1)), append(line.Y, means[i].mean(p)/1e3)
			}
			chart.Lines = append(chart.Lines, line)
		}
		out.Charts = append(out.Charts, chart)
	}
	return out, nil
}

// fabricPorts are the ports of live links between switches.
func fabricPorts(t *topology.Topology) (up, down []int) {
	for l := range t.Links() {
		if t.Node(l.A).Layer == topology.LayerEdge && t.Live(l.ID) {
			up, down = append(up, 2*int(l.ID)), append(down, 2*int(l.ID)+1)
		}
	}
	return up, down
}

// queueMeans are those of all ports over samples.
type queueMeans struct {
	samples int
	total   []float64
}

func (m *queueMeans) sample(_ time.Duration, v sim.View) {
	m.samples++
	for p := range m.total {
		m.total[p] += float64(v.QueueBytes(p))
	}
}

func (m *queueMeans) mean(port int) float64 { return m.total[port] / float64(max(m.samples, 1)) }

// over is the mean of ports' means.
func (m *queueMeans) over(ports []int) (mean float64) {
	for _, p := range ports {
		mean += m.mean(p) / float64(len(ports))
	}
	return mean
}
