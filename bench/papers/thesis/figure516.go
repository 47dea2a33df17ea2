package thesis

import (
	"context"
	"fmt"
	"math"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/topology"
)

const (
	// oneLink joins the racks by the link that all flows share.
	oneLink       = "leaf-spine:leaves=2,spines=1,hosts=12,host-rate=1000,fabric-rate=1000"
	fairFlows     = 5
	fairEvery     = 25 * time.Second
	fairLook      = 250 * time.Millisecond
	fairLookQuick = 100 * time.Millisecond
)

func figure516() papers.Experiment {
	return papers.Experiment{
		Name: "thesis-f5.16", Source: "thesis §5.5.3, Fig. 5.16",
		Title: "five flows begin on one link, 25 s after one another: DCTCP by a bump, and TCP",
		Setting: append([]papers.Parameter{
			stated("traffic", "five hosts each open a connection to one of five others, every 25 s one more"),
			stated("DCTCP", "marks beyond 20 packets of instantaneous queue"),
			chosen("bottleneck", "the link between racks, with 1 Gbit/s", "the figure is of five flows that share a bottleneck link, and the testbed's own have 10"),
			chosen("fairness", "Jain's index of goodputs in windows of 250 ms, where two or more flows send; oscillation: the standard deviation of a flow's windows by the fair share", "the thesis shows curves and gives no figures"),
			chosen("end", "25 s after the fifth flow has begun, none ends before", "not stated"),
		}, testbedSetting...),
		Mutants: []papers.Mutant{lateMarks},
		Run:     runFigure516,
	}
}

func runFigure516(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
	out := &papers.Outcome{}
	every, look := fairEvery, fairLook
	if o.Quick {
		every, look = 2*time.Second, fairLookQuick
		out.Settings = append(out.Settings, chosen("time", "a flow more every 2 s, windows of 100 ms", "quick"))
	}
	to := func(i int) topology.NodeID { return topology.NodeID(rackSize + i) }
	shares := make([][][fairFlows]float64, len(dctcpSchemes)) // Mbit/s by window
	configs := make([]sim.Config, len(dctcpSchemes))
	for i, scheme := range dctcpSchemes {
		c, err := testbedConfig(o, oneLink, fairFlows*every)
		if err != nil {
			return nil, err
		}
		if c.Workload, err = elephants(fairFlows, to, fairFlows, every); err != nil {
			return nil, err
		}
		var before [fairFlows]int64
		c.SampleEvery, c.OnSample = look, func(now time.Duration, v sim.View) {
			var window [fairFlows]float64
			for f := range window {
				n := v.Delivered(to(f))
				window[f] = float64(n-before[f]) * 8 / 1e6 / look.Seconds()
				before[f] = n
			}
			if now > 0 {
				shares[i] = append(shares[i], window)
			}
		}
		if scheme == "DCTCP" {
			withDCTCP(o, &c, sim.EdgeUp)
		}
		configs[i] = c
	}
	results, err := papers.Sweep(ctx, o, configs)
	if err != nil {
		return nil, err
	}
	out.PacketHops = papers.Hops(results)
	jain, swing := make([]float64, len(dctcpSchemes)), make([]float64, len(dctcpSchemes))
	for i, scheme := range dctcpSchemes {
		jain[i], swing[i] = fairness(shares[i], int(every/look))
		out.Rows = append(out.Rows,
			papers.Info(scheme, "Jain's index, mean", jain[i]),
			papers.Info(scheme, "oscillation, % of the fair share", swing[i]),
			papers.Info(scheme, "goodput, Mbit/s", goodput(results[i], to)))
		out.Charts = append(out.Charts, fairChart(scheme, shares[i], look))
	}
	out.Rows = append(out.Rows,
		papers.Order("fairness: DCTCP > TCP", jain[1], jain[0]),
		papers.Order("oscillation: TCP > DCTCP", swing...))
	return out, nil
}

// fairness is Jain's index, the mean over windows in which two flows or more send, and how
// far a flow's goodput swings about its mean, in percent of the fair share. Every so many
// windows a flow more sends; the window in which one begins is left out.
func fairness(windows [][fairFlows]float64, perFlow int) (jain, swing float64) {
	counted, swings := 0, 0
	for n := 2; n <= fairFlows; n++ {
		first, last := (n-1)*perFlow+1, min(n*perFlow, len(windows))
		if first >= last {
			break
		}
		for _, w := range windows[first:last] {
			sum, squares := 0.0, 0.0
			for _, x := range w[:n] {
				sum += x
				squares += x * x
			}
			if squares > 0 {
				jain += sum * sum / (float64(n) * squares)
				counted++
			}
		}
		for f := range n {
			sum, squares, all := 0.0, 0.0, 0.0
			for _, w := range windows[first:last] {
				sum += w[f]
				squares += w[f] * w[f]
				all += total(w[:n])
			}
			k := float64(last - first)
			mean, fair := sum/k, all/k/float64(n)
			if fair > 0 {
				swing += 100 * math.Sqrt(max(0, squares/k-mean*mean)) / fair
				swings++
			}
		}
	}
	return jain / float64(max(counted, 1)), swing / float64(max(swings, 1))
}

func fairChart(scheme string, windows [][fairFlows]float64, look time.Duration) papers.Chart {
	c := papers.Chart{Title: "Fig. 5.16, " + scheme, X: "s", Y: "Mbit/s"}
	for f := range fairFlows {
		l := papers.Line{Name: fmt.Sprintf("flow %d", f+1)}
		for i, w := range windows {
			l.X, l.Y = append(l.X, float64(i+1)*look.Seconds()), append(l.Y, w[f])
		}
		c.Lines = append(c.Lines, l)
	}
	return c
}

// goodput is that of all receivers, in Mbit/s.
func goodput(r *sim.Result, to func(i int) topology.NodeID) (mbit float64) {
	for f := range fairFlows {
		mbit += float64(r.DeliveredBytes[to(f)]) * 8 / 1e6 / r.End.Seconds()
	}
	return mbit
}
