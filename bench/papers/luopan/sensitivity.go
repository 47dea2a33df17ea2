package luopan

import (
	"context"
	"fmt"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/bench/sim/spray"
	"weft/bench/sim/workload"
	"weft/policy"
)

// variant is luopan with other options than the paper's.
type variant struct {
	name string
	tune func(*sim.Config)
}

func expires(after time.Duration) variant {
	return variant{fmt.Sprintf("expiry %v", after), func(c *sim.Config) { c.Options.Expiry = after }}
}

func takes(samples int) variant {
	return variant{fmt.Sprintf("%d samples", samples), func(c *sim.Config) { c.Options.Samples = samples }}
}

// takesNoTime is luopan whose samples do not age on their way.
func takesNoTime(after time.Duration) variant {
	return variant{fmt.Sprintf("%s, expiry %v", timeless, after), func(c *sim.Config) {
		c.Policy, c.Options = timeless, policy.Options{Expiry: after}
	}}
}

// highLoad is where the paper's variants differ most.
const highLoad = .8

// highLoadOnly is a Parameter of both.
var highLoadOnly = chosen("load", "0.8; payload, of what the links from racks to aggregation switches carry", "the paper's are 0.2 to 0.8; what it states is of this")

// sensitivity runs variants at load 0.8 in so many pods.
func sensitivity(ctx context.Context, o papers.Options, pods int, arrivals time.Duration, variants []variant) (*papers.Outcome, []*times, error) {
	top, err := fatTree(pick(o, pods, 6), oversub)
	if err != nil {
		return nil, nil, err
	}
	sizes, err := workload.LoadCDF(webSearch)
	if err != nil {
		return nil, nil, err
	}
	arrivals = pick(o, arrivals, time.Millisecond)
	var trials []trial
	for _, v := range variants {
		trials = append(trials, trial{top: top, scheme: luopanScheme, sizes: sizes, load: highLoad, arrivals: arrivals, probes: pick(o, probes, 200), tune: v.tune})
	}
	all, err := play(ctx, o, trials, nil)
	if err != nil {
		return nil, nil, err
	}
	out := &papers.Outcome{PacketHops: hops(all), Settings: run(top.String(), arrivals, all)}
	for i, t := range all {
		name := variants[i].name
		out.Rows = append(out.Rows,
			papers.Info(name, "all flows mean, µs", overallMean.of(t)),
			papers.Info(name, "2 KB probes p99.9, µs", probeTail.of(t)),
			papers.Info(name, "probes and answers, % of the racks' links", probing(t.result, trials[i])))
	}
	return out, all, nil
}

// probing is the load of probes and their answers on the links that lead up from
// racks, until the last flow has ended.
func probing(r *sim.Result, t trial) float64 {
	bits := float64(r.ProbePackets) * spray.ProbeBytes * 8
	return 100 * bits / ((r.End - t.arrivals/warm).Seconds() * workload.FabricMbit(t.top) * 1e6)
}

func expiry() papers.Experiment {
	return papers.Experiment{
		Name: "luopan-f11", Source: "Luopan §4.3, Fig. 11", Title: "how long a sample is good for; tables of racks and of hosts",
		Setting: setting(parameter("flow sizes", webSearch), highLoadOnly, parameter("expiry", "10 to 200 µs, and following the round trip"),
			chosen("a host's own table", "expiry 40 µs", "weft's hosts sample for themselves; the paper's racks do"), timelessToo),
		Run: func(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
			variants := []variant{
				expires(10 * time.Microsecond), expires(expiryTime), expires(200 * time.Microsecond),
				{"expiry by round trip", func(c *sim.Config) { c.Options.Expiry = 0 }},
				{"expiry 40µs, samples alone", func(c *sim.Config) { c.Spray.SamplesOnly = true }},
				{"expiry 200µs, samples alone", func(c *sim.Config) { c.Options.Expiry, c.Spray.SamplesOnly = 200*time.Microsecond, true }},
				{"expiry 40µs, a table per host", func(c *sim.Config) { c.Spray.RackSamples = false }},
				takesNoTime(10 * time.Microsecond), takesNoTime(expiryTime), takesNoTime(200 * time.Microsecond),
			}
			out, all, err := sensitivity(ctx, o, 12, 8*time.Millisecond, variants)
			if err != nil {
				return nil, err
			}
			out.Rows = append([]papers.Row{
				papers.AtMost("40 µs vs 10 µs", "change of all flows mean, %", 5, overallMean.change(all[1], all[0]), 10),
				papers.Sign("all flows mean: 200 µs is worse than 40 µs", overallMean.change(all[2], all[1]) > papers.Tie),
				papers.Sign("all flows mean, samples alone: 200 µs is worse than 40 µs", overallMean.change(all[5], all[4]) > papers.Tie),
			}, out.Rows...)
			out.Rows = append(out.Rows, papers.Info("a table per host vs per rack", "change of all flows mean, %", overallMean.change(all[6], all[1])),
				papers.Info("a table per host vs per rack", "change of 2 KB probes p99.9, %", probeTail.change(all[6], all[1])),
				papers.Info(timeless+", 40 µs vs 10 µs", "change of all flows mean, %", overallMean.change(all[8], all[7])),
				papers.Info(timeless+", 200 µs vs 40 µs", "change of all flows mean, %", overallMean.change(all[9], all[8])))
			out.Because = because(o, "weft's luopan counts what it has sent since a sample, so that it does not herd when samples get old")
			return out, nil
		},
	}
}

func samples() papers.Experiment {
	return papers.Experiment{
		Name: "luopan-f12", Source: "Luopan §4.3, Fig. 12", Title: "how many paths are sampled",
		Setting: setting(parameter("flow sizes", webSearch), highLoadOnly, chosen("fabric", "8 pods, 2 to 16 samples of 16 paths", "of the paper's 36 samples in 12 pods the probes alone are more packets than a run may have; all paths are all paths")),
		Run: func(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
			variants := pick(o, []variant{takes(2), takes(4), takes(9), takes(16)}, []variant{takes(2), takes(4), takes(9)})
			out, all, err := sensitivity(ctx, o, 8, 30*time.Millisecond, variants)
			if err != nil {
				return nil, err
			}
			worst := overallMean.change(all[0], all[1])
			for _, t := range all[2:] {
				worst = max(worst, overallMean.change(all[0], t))
			}
			rows := []papers.Row{papers.AtMost("2 samples vs the best of more", "change of all flows mean, %", 5, worst, 10)}
			if !o.Quick {
				flat := papers.AtLeast("all 16 samples vs 9", "change of all flows mean, %", -5, overallMean.change(all[3], all[2]), 10).Own()
				flat.Note = `the paper: "does not improve performance much"; OK is an improvement of at most 5 %`
				rows = append(rows, flat)
			}
			out.Rows = append(rows, out.Rows...)
			return out, nil
		},
	}
}
