package conga

import (
	"context"
	"slices"
	"strconv"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/bench/sim/workload"
	"weft/topology"
)

// f14 is a job that writes into HDFS.
func f14() papers.Experiment {
	return papers.Experiment{
		Name: "conga-f14", Source: "CONGA §5.4, Fig. 14",
		Title: "63 nodes write 1 TB into HDFS beside enterprise traffic: with a link down the job takes nearly twice as long with ECMP, and no longer with CONGA",
		Setting: onTestbed(enterprise.parameter(),
			papers.Parameter{Name: "job", Value: "1 TB in three copies, written by 63 data nodes; the 64th names"},
			papers.Parameter{Name: "background", Value: "enterprise traffic at load " + backgroundLoad, Chosen: true, Why: "the load is not stated; at this one ECMP's link to the leaf is overloaded only together with the job"},
			papers.Parameter{Name: "disks", Value: "a node begins a block of 4 MB every 33 ms, 120 MB/s, and not before the last one is written", Chosen: true,
				Why: "disk-bound in the paper; its nodes have three disks of 7,200 rpm, of which each block takes a copy's time"},
			papers.Parameter{Name: "placement", Value: "a copy at the writer, one on a node of the other rack, one on another node there, passed on as it comes", Chosen: true, Why: "Hadoop's default"},
			papers.Parameter{Name: "blocks", Value: "4 MB, each on connections of its own", Chosen: true, Why: "Hadoop's 64 MB would outlast the run"},
			papers.Parameter{Name: "time of the job", Value: "1 TB at the rate at which the slower rack's nodes write", Chosen: true,
				Why: "a node's part of 1 TB is thousands of blocks, over which nodes of a rack average out"},
		),
		Decisions: []papers.Decision{buffers("CONGA", "ECMP"), backgrounds(), windows("CONGA", "ECMP"), initialWindow("CONGA", "ECMP"), timestamps("CONGA", "ECMP")},
		Run:       runHDFS,
	}
}

const (
	jobBytes       = 1e12
	blockBytes     = 4_000_000
	blockPace      = 33 * time.Millisecond
	backgroundLoad = "0.4"
)

var hdfsTimes = times{150 * time.Millisecond, 500 * time.Millisecond, 0}

var hdfsSchemes = []string{ecmp, conga, mptcp, host}

// backgrounds are other loads. Options.As is asked of the load's name.
func backgrounds() papers.Decision {
	d := papers.Decision{
		Parameter: "load of the background", About: []string{"CONGA", "ECMP"},
		Ends: "at 0.2 background and job together do not fill the link that is left with ECMP, at 0.55 they fill three quarters of all links, which are left of any scheme's",
	}
	for _, load := range []string{"0.2", "0.3", "0.5", "0.55"} {
		d.Values = append(d.Values, papers.DecisionValue{Name: "load " + load, Replace: map[string]string{backgroundLoad: load}})
	}
	return d
}

func runHDFS(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
	hosts, tm, extra := sizeOf(o, hdfsTimes)
	tm.drain = 0
	load, err := strconv.ParseFloat(o.As(backgroundLoad), 64)
	if err != nil {
		return nil, err
	}
	whole, err := testbed(hosts)
	if err != nil {
		return nil, err
	}
	half, err := broken(hosts)
	if err != nil {
		return nil, err
	}
	var runs []run
	for _, f := range []fabric{whole, half} {
		base := run{fabric: f, connections: persistent, traffic: enterprise, times: tm}
		runs = append(runs, base.of(hdfsSchemes, []float64{load})...)
	}
	block, pace := int64(blockBytes), blockPace
	if o.Quick {
		block, pace = block/10, pace/10
		extra = append(extra, papers.Parameter{Name: "blocks", Value: "a tenth", Chosen: true, Why: "quick"})
	}
	jobs := make([]*writers, len(runs))
	results, err := play(ctx, o, runs, func(i int, c *sim.Config) {
		jobs[i] = newWriters(dataNodes(hosts), block, pace, tm.warmup, tm.arrivals, o.Seed)
		c.Workload, c.OnFlow = workload.Merge(c.Workload, jobs[i]), nil
	})
	if err != nil {
		return nil, err
	}
	out := &papers.Outcome{Settings: extra, PacketHops: hops(results)}
	if !o.Quick {
		out.Because = "the background's load and the disks' rate are not stated"
	}
	n := len(hdfsSchemes)
	of := func(scheme string, failed bool) float64 {
		i := slices.Index(hdfsSchemes, scheme)
		if failed {
			i += n
		}
		return jobs[i].job(jobBytes)
	}
	const ratio = "ratio of the job's times"
	out.Rows = []papers.Row{
		papers.Within("ECMP, with the failure beside without", "time of the job, %", 100, papers.Change(of(ecmp, false), of(ecmp, true)), aboutPercent),
		papers.Ratio("CONGA, with the failure by without", ratio, 1, of(conga, true), of(conga, false), papers.Stated).Own(), // "almost no impact"
		papers.Ratio("CONGA by ECMP, without the failure", ratio, 1, of(conga, false), of(ecmp, false), papers.Stated).Own(), // "nearly identical"
		papers.Order("with the failure, time of the job: ECMP > CONGA", of(ecmp, true), of(conga, true)),
	}
	chart := papers.Chart{Title: "Time of the job", Y: "s"}
	for i, r := range runs {
		name := labelOf(r.policy) + ", without the failure"
		if i >= n {
			name = labelOf(r.policy) + ", with the failure"
		}
		out.Rows = append(out.Rows, papers.Info(name, "time of the job, s", jobs[i].job(jobBytes)))
		chart.Bars = append(chart.Bars, papers.Bar{Name: name, Ours: jobs[i].job(jobBytes)})
	}
	out.Charts = append(out.Charts, chart)
	return out, nil
}

// dataNodes are all hosts but the first, by rack.
func dataNodes(hosts int) (racks [2][]topology.NodeID) {
	for h := 1; h < 2*hosts; h++ {
		racks[h/hosts] = append(racks[h/hosts], topology.NodeID(h))
	}
	return racks
}
