package drb

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/bench/sim/workload"
	"weft/topology"
)

func f7() papers.Experiment {
	return papers.Experiment{
		Name: "drb-f7", Source: paper + " §5.2, Fig. 7",
		Title: "short flows between two busy racks",
		Setting: settingOf(simulated,
			papers.Parameter{Name: "fabric", Value: "fat-tree, n = 24, 3,456 hosts, 1 Gbit/s"},
			papers.Parameter{Name: "trace", Value: "a stand-in: all but one host of the first rack and of the first of another pod send without end to hosts of other pods, each to another one, and receive so; 11 of 12 hosts are a load of 92 %. All other hosts begin flows of up to 4 KB, 1,000 a second each",
				Chosen: true, Why: "the paper's is private: 80 % of its flows are below 4 KB, 1 % above 50 MB, its two busiest racks are loaded to 92 and 90 %"},
			papers.Parameter{Name: "probes", Value: "4 KB from the first rack's reserved host to the other's, one after the other with pauses of 200 µs on average"},
			papers.Parameter{Name: "time", Value: "400 ms, the first 50 ms dropped", Chosen: true, Why: "not stated"}),
		Mutants:   []papers.Mutant{atRandom},
		Decisions: []papers.Decision{beginnings},
		Judge:     judgeTrace,
		Run:       runF7,
	}
}

const (
	probeBytes = 4 << 10
	probeClass = 1
)

func runF7(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
	out := &papers.Outcome{}
	spec, tm := fatTree24, times{400 * time.Millisecond, 50 * time.Millisecond}
	if o.Quick {
		spec, tm = fatTree8, times{30 * time.Millisecond, 5 * time.Millisecond}
		out.Settings = []papers.Parameter{{Name: "quick", Value: spec + ", 30 ms, the first 5 ms dropped"}}
	}
	t, err := topology.Parse(spec)
	if err != nil {
		return nil, err
	}
	order := []string{"drb", "rb", "rrb", "ecmp"}
	times := make([][]float64, len(order)) // of probes, in µs
	var configs []sim.Config
	for i, policy := range order {
		c := network(o, t, policy, tm)
		if c.Workload, err = busyRacks(t, o.Seed); err != nil {
			return nil, err
		}
		c.OnFlow = func(f sim.FlowEnd) {
			if f.Class == probeClass && f.Start >= tm.warmup {
				times[i] = append(times[i], float64(f.FCT)/1000)
			}
		}
		configs = append(configs, c)
	}
	_, hops, err := simulate(ctx, o, configs)
	if err != nil {
		return nil, err
	}
	out.PacketHops = hops
	const metric = "flow completion time of 4 KB, mean, µs"
	var fct, most []float64
	chart := papers.Chart{Title: "Fig. 7b: flow completion time of 4 KB", X: "µs", Y: "CDF"}
	for i, policy := range order {
		if len(times[i]) == 0 {
			return nil, fmt.Errorf("%s: no probe has ended", policy)
		}
		line := papers.CDF(labels[policy], times[i]) // sorts
		fct, most = append(fct, average(times[i])), append(most, times[i][len(times[i])-1])
		if policy != "ecmp" {
			chart.Lines = append(chart.Lines, line)
		}
	}
	out.Rows = []papers.Row{
		papers.Within("DRB", metric, 692, fct[0], papers.Stated),
		papers.Within("RB", metric, 891, fct[1], papers.Stated),
		papers.Info("RRB", metric, fct[2]),
		papers.Info("ECMP", metric, fct[3]),
		papers.Within("ECMP", "flow completion time of 4 KB, greatest, µs", 20000, most[3], papers.Stated),
		papers.Order("mean FCT: RRB > RB > DRB", fct[2], fct[1], fct[0]),
		papers.Sign("greatest FCT: ECMP's", papers.Above(most[3], max(most[0], most[1], most[2]))),
		papers.Info("RB over DRB", "ratio of mean FCTs (the paper's is 1.29)", fct[1]/fct[0]),
	}
	out.Charts = []papers.Chart{chart}
	return out, nil
}

// judgeTrace does not let a stand-in for a trace agree.
func judgeTrace(rows []papers.Row) (papers.Verdict, string) {
	v := papers.Judge(rows)
	if v == papers.Agrees {
		v = papers.AgreesOrder
	}
	return v, "The trace is private: of a stand-in only the order can be compared. Where a probe begins with a handshake and one segment, as in ns-3, RB takes 908 µs for 891 and DRB 486 for 692 (one seed, 70 ms). The rest may be the trace, of which the paper states the load of two racks alone."
}

func average(x []float64) (mean float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	return mean
}

// busyRacks is the stand-in for §5.2's trace.
func busyRacks(t *topology.Topology, seed uint64) (workload.Source, error) {
	pod := len(workload.PodOf(t, 0))
	racks := [2][]topology.NodeID{workload.RackOf(t, 0), workload.RackOf(t, topology.NodeID(pod))}
	var quiet []topology.NodeID // hosts of other pods
	for _, h := range workload.Hosts(t) {
		if int(h) >= 2*pod {
			quiet = append(quiet, h)
		}
	}
	rng := rand.New(rand.NewPCG(seed, 0x74726163))
	peers := rng.Perm(len(quiet))
	to := make([]topology.NodeID, t.NumHosts())
	var senders []topology.NodeID
	for _, rack := range racks {
		for _, h := range rack[1:] {
			from, dst := quiet[peers[0]], quiet[peers[1]]
			peers = peers[2:]
			to[h], to[from] = dst, h
			senders = append(senders, h, from)
		}
	}
	bulk, err := workload.NewClosed(workload.ClosedConfig{
		Senders: senders, To: workload.To(to), Rounds: 1, Spread: startSpread, Seed: seed,
	})
	if err != nil {
		return nil, err
	}
	anywhere, err := workload.Uniform(t, workload.Anywhere)
	if err != nil {
		return nil, err
	}
	sizes, err := workload.ParseCDF([]byte("100 0\n4096 1\n"))
	if err != nil {
		return nil, err
	}
	mice, err := workload.NewPoisson(workload.PoissonConfig{
		Senders: quiet, To: anywhere, Sizes: sizes, PerSecond: 1000 * float64(len(quiet)), Seed: seed,
	})
	if err != nil {
		return nil, err
	}
	reserved := [2]topology.NodeID{racks[0][0], racks[1][0]}
	probes, err := workload.NewPoisson(workload.PoissonConfig{
		Senders: reserved[:1], To: workload.Among(reserved[1:]), Sizes: workload.Fixed(probeBytes),
		PerSecond: 5000, Class: probeClass, Seed: seed,
	})
	if err != nil {
		return nil, err
	}
	return workload.Merge(bulk, mice, probes), nil
}
