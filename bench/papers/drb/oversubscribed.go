package drb

import (
	"context"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/topology"
)

func oversubscribed() papers.Experiment {
	return papers.Experiment{
		Name: "drb-5.5", Source: paper + " §5.5",
		Title: "2:1 oversubscribed, with and without ECN",
		Setting: settingOf(simulated,
			papers.Parameter{Name: "fabric", Value: "fat-tree, n = 24, 24 hosts a rack, 6,912 hosts, 1 Gbit/s; VL2, d0 = 4, d1 = 64, d2 = 24, 40 hosts a rack, 7,680 hosts, 1 and 5 Gbit/s"},
			papers.Parameter{Name: "traffic", Value: "random permutation, without end"},
			papers.Parameter{Name: "ECN", Value: "32 KB per Gbit/s, instantaneous; TCP halves its window once a round trip (RFC 3168)"},
			papers.Parameter{Name: "time", Value: "16 ms, the first 8 ms dropped", Chosen: true, Why: "the paper's 1 s would take minutes; in 20 ms goodputs with ECN are the same within 1 %"}),
		Mutants:   []papers.Mutant{atRandom},
		Decisions: []papers.Decision{windowsFitted([]string{"RB"}, theirs, []int{80, 96, 112}, 256)},
		Run:       runOversubscribed,
	}
}

func runOversubscribed(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
	out := &papers.Outcome{}
	tree, clos, tm := overFatTree, overVL2, times{16 * time.Millisecond, 8 * time.Millisecond}
	if o.Quick {
		tree, clos, tm = overFatTreeSmall, overVL2Small, times{6 * time.Millisecond, 3 * time.Millisecond}
		out.Settings = []papers.Parameter{{Name: "quick", Value: tree + " and " + clos + ", 6 ms, the first 3 ms dropped"}}
	}
	sprayed := policies[1:]
	var configs []sim.Config
	for _, fabric := range []struct {
		spec string
		ecn  bool
	}{{tree, true}, {tree, false}, {clos, true}} {
		t, err := topology.Parse(fabric.spec)
		if err != nil {
			return nil, err
		}
		for _, policy := range sprayed {
			c, err := permute(network(o, t, policy, tm), startSpread)
			if err != nil {
				return nil, err
			}
			if fabric.ecn {
				c = withECN(c)
			}
			configs = append(configs, c)
		}
	}
	// DRB without ECN again, with larger windows; the last is the one that the paper
	// states.
	for _, window := range []int{96 << 10, stated} {
		c, err := permute(network(o, configs[0].Topology, "drb", tm), startSpread)
		if err != nil {
			return nil, err
		}
		c.TCP.WindowBytes = window
		configs = append(configs, c)
	}
	runs, hops, err := simulate(ctx, o, configs)
	if err != nil {
		return nil, err
	}
	out.PacketHops = hops
	n := len(sprayed)
	ecn, without, rest, wider := runs[:n], runs[n:2*n], runs[2*n:3*n], runs[3*n:]
	goodput := map[string]float64{"DRB": 456, "RB": 418, "RRB": 340}
	for _, m := range ecn {
		out.Rows = append(out.Rows, papers.Within(m.label+", ECN", goodputMetric, goodput[m.label], m.goodput, 10))
	}
	with, plain := byLabel(ecn, "DRB"), byLabel(without, "DRB")
	out.Rows = append(out.Rows,
		papers.Within("DRB, ECN", latencyMetric, 346, mean(with.Latency), 10),
		papers.Within("DRB", latencyMetric, 839, mean(plain.Latency), 10),
		papers.Order("goodput with ECN: DRB > RB > RRB", with.goodput, byLabel(ecn, "RB").goodput, byLabel(ecn, "RRB").goodput),
		papers.Order("mean latency of DRB: without ECN > with", mean(plain.Latency), mean(with.Latency)))
	for _, m := range without {
		out.Rows = append(out.Rows, papers.Info(m.label, goodputMetric, m.goodput))
		if m.label != "DRB" {
			out.Rows = append(out.Rows, papers.Info(m.label, latencyMetric, mean(m.Latency)))
		}
	}
	for i, m := range wider {
		label := [...]string{"DRB, 96 KB window", "DRB, 256 KB window"}[i]
		out.Rows = append(out.Rows, papers.Info(label, goodputMetric, m.goodput), papers.Info(label, latencyMetric, mean(m.Latency)))
	}
	out.Because = "Without ECN it is the window that bounds the queues: 64 KB at 470 Mbit/s are a round trip of 1.1 ms, of which data have half. The paper's 839 µs are what about 100 KB would give, by the same sum; with the 256 KB that it states ports overflow and goodput breaks down."
	for _, m := range rest {
		label := "VL2, " + m.label + ", ECN"
		out.Rows = append(out.Rows, papers.Info(label, goodputMetric, m.goodput), papers.Info(label, latencyMetric, mean(m.Latency)))
	}
	out.Charts = []papers.Chart{
		bars("Goodput with ECN, fat-tree", "Mbit/s per host", ecn, goodput),
		cdfs("Network latency with ECN, fat-tree", "µs", ecn, latencies),
		cdfs("Network latency without ECN, fat-tree", "µs", without, latencies),
	}
	return out, nil
}
