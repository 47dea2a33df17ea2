package luopan

import (
	"context"
	"fmt"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/bench/sim/workload"
	"weft/bench/stats"
)

// The paper's jobs (§4.5): 7,500 in 250 ms.
const (
	jobsPerMillisecond = 30
	jobServers         = 20
	jobBytes           = 1_000_000
)

func incast() papers.Experiment {
	return papers.Experiment{
		Name: "luopan-f17", Source: "Luopan §4.5, Fig. 17", Title: "1 MB from 20 servers, beside web search at load 0.8, DCTCP",
		Setting: setting(parameter("flow sizes", webSearch), parameter("jobs", "30 a millisecond, a client and 20 servers each, all random hosts"),
			parameter("transport", "DCTCP, K = 100 KB, RTO min 200 µs"),
			chosen("requests", "not sent: all servers begin at once", `"in a synchronized pattern"`)),
		Run: runIncast,
	}
}

func runIncast(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
	top, err := fatTree(pick(o, 12, 6), oversub)
	if err != nil {
		return nil, err
	}
	sizes, err := workload.LoadCDF(webSearch)
	if err != nil {
		return nil, err
	}
	arrivals := pick(o, 36*time.Millisecond, 2*time.Millisecond)
	jobs := int(arrivals.Milliseconds()) * pick(o, jobsPerMillisecond, 4)
	names := []string{luopanScheme, presto, random}
	trials, done, took := make([]trial, len(names)), make([]workload.Jobs, len(names)), make([][]float64, len(names))
	for i, name := range names {
		t := trial{top: top, scheme: name, sizes: sizes, load: .8, arrivals: arrivals, tune: withDCTCP}
		done[i] = workload.NewJobs(jobs, jobServers)
		trials[i] = t
		trials[i].source = func(seed uint64) (workload.Source, error) {
			flows, err := t.betweenPods(seed)
			if err != nil {
				return nil, err
			}
			in, err := workload.NewIncast(workload.IncastConfig{Hosts: workload.Hosts(top), Servers: jobServers, Bytes: jobBytes,
				Jobs: jobs, Until: arrivals, Class: job, Seed: seed + 2})
			return workload.Merge(flows, in), err
		}
	}
	all, err := play(ctx, o, trials, func(i int, f sim.FlowEnd) {
		if f.Class != job {
			return
		}
		if t, ok := done[i].Ended(f.Flow, f.FCT); ok {
			took[i] = append(took[i], float64(t.Nanoseconds())/1e3)
		}
	})
	if err != nil {
		return nil, err
	}
	chart := papers.Chart{Title: "incast jobs", X: "completion time, µs", Y: "CDF"}
	for i, name := range names {
		chart.Lines = append(chart.Lines, papers.CDF(name, took[i]))
	}
	vs := func(p float64, other int) float64 {
		return papers.Change(stats.Percentile(took[other], p), stats.Percentile(took[0], p))
	}
	tail := papers.Within("luopan vs presto", "change of jobs p99, %", -20, vs(99, 1), upToTolerance)
	tail.Note = "the paper: the 99.9th percentile of 7,500 jobs; ours: the 99th of fewer; OK is within half of the paper's change"
	rows := []papers.Row{tail, papers.Order("jobs p99: presto > luopan", stats.Percentile(took[1], 99), stats.Percentile(took[0], 99)),
		papers.Info("luopan vs presto", "change of jobs median, %", vs(50, 1)),
		papers.Info("luopan vs rand", "change of jobs p99, %", vs(99, 2)),
		papers.Info("luopan vs presto", "change of jobs p99.9, %", vs(99.9, 1))}
	settings := append(run(top.String(), arrivals, all), parameter("jobs counted", fmt.Sprint(len(took[0]))))
	return &papers.Outcome{Rows: rows, Charts: []papers.Chart{chart}, PacketHops: hops(all), Settings: settings}, nil
}
