package thesis

import (
	"context"
	"fmt"
	"time"

	"weft/bench/papers"
	"weft/bench/sim/fluid"
	"weft/bench/sim/workload"
	"weft/hedera"
)

// table43Rows are those of the thesis for ECMP, GFF, SA and the non-blocking
// switch.
var table43Rows = []struct {
	pattern pattern
	gb, ms  [4]float64
}{
	{stride(1), [4]float64{1.94, 1.94, 1.94, 1.93}, [4]float64{10.9, 10.9, 10.9, 11}},
	{stride(2), [4]float64{.86, 1.93, 1.93, 1.93}, [4]float64{24.7, 11.2, 11.2, 11}},
	{stride(4), [4]float64{.48, 1.92, 1.92, 1.93}, [4]float64{41.9, 11.3, 11.3, 11}},
	{stride(8), [4]float64{.48, 1.92, 1.92, 1.93}, [4]float64{41.9, 11.3, 11.3, 11}},
	{staggered(1, 0, true), [4]float64{1.94, 1.94, 1.94, 1.93}, [4]float64{10.9, 10.9, 10.9, 11}},
	{staggered(.5, .3, true), [4]float64{1.38, 1.93, 1.93, 1.93}, [4]float64{20.63, 11.2, 11.2, 11}},
	{staggered(.2, .3, true), [4]float64{.96, 1.25, 1.93, 1.93}, [4]float64{32.47, 20.85, 11.2, 11}},
	{randomBijection, [4]float64{.66, 1.07, 1.93, 1.93}, [4]float64{38.75, 19.28, 11.2, 11}},
	{randomAny, [4]float64{.82, 1.05, 1.05, 1.09}, [4]float64{37.84, 23.24, 23.24, 16.63}},
}

var table43Schemes = [...]struct {
	scheme
	column int // of the table
}{
	{hashed("ECMP", fluid.ByDestination), 0},
	{firstFit("GFF", fluid.ByDestination), 1},
	{annealed(1000), 2},
	{nonBlocking, 3},
}

// table43Run is what a scheme reaches: GB/s at the beginning, and the mean time.
type table43Run struct{ gb, ms float64 }

func table43() papers.Experiment {
	return papers.Experiment{
		Name: "hedera-t4.3", Source: "thesis §4.4.4, Table 4.3",
		Title: "16 hosts each send 1 MB at once: bisection bandwidth and time",
		Setting: []papers.Parameter{
			stated("fabric", "fat-tree, k = 4, 1 Gbit/s"),
			stated("traffic", "every host sends 1 MB at once"),
			stated("c", "0.5 T0"),
			chosen("rates", "max-min fair, at once", "so times are compared with the non-blocking switch's, which had TCP's slow start, too"),
			chosen("payload", "1,460 of 1,514 bytes", "makes the non-blocking switch's 1.93 GB/s"),
			chosen("ECMP", "a hash of the destination's address", "as in the testbed (§4.4.2); what the simulator hashes is not stated, and its figures for strides are those of one path per pod"),
			chosen("placement", "before the flows begin", "they are over in 11 ms"),
			chosen("SA", "1,000 iterations", "the least of Table 4.4"),
			chosen("GFF", "what fits exactly, fits; hosts in order, who finds no path hashes", "the pseudo-code asks for less than the capacity, which no flow that fills a link could meet"),
			chosen("mappings", "200 of each pattern, which the schemes share", "not stated; means of few vary"),
		},
		Mutants: []papers.Mutant{
			{Name: "simulated annealing hashes", About: []string{"SA"}, Replace: map[string]string{"SA": ""}},
			{Name: "global first fit hashes", About: []string{"GFF"}, Replace: map[string]string{"GFF": ""}},
		},
		Decisions: []papers.Decision{
			// A subnet has several paths, and a hash of fields of the packet chooses one of them
			// (§2.2.1). The thesis hashes the destination's address (§4.4.2) or the 10-tuple (§4.2).
			// Two values are fits: we thought of them because the thesis' figures for strides are
			// those of one path for a pod. If subnets are pods and the hash takes the prefix alone,
			// each pod has one path. If routers keep one of equal routes, all flows have one.
			{Parameter: "fields that the simulator's ECMP hashes", About: []string{"ECMP"},
				Ends: "the address, all of the flow, the prefix of the pod, or nothing", Discrete: true,
				Values: []papers.DecisionValue{
					{Name: "the flow", Replace: map[string]string{"ECMP": "by flow"}},
					{Name: "the destination's pod", Replace: map[string]string{"ECMP": "by pod"}, Fitted: true},
					{Name: "nothing: one of equal routes is kept", Replace: map[string]string{"ECMP": "first"}, Fitted: true},
				}},
			{Parameter: "path of a flow for which global first fit finds none", About: []string{"GFF"},
				Ends: "it hashes, or has the first path, or that of its pod", Discrete: true,
				Values: []papers.DecisionValue{
					{Name: "takes the first path", Replace: map[string]string{"GFF": "GFF, else first"}},
					{Name: "takes the path of its destination's pod", Replace: map[string]string{"GFF": "GFF, else by pod"}},
				}},
			fitted(drawnMappings("mapping of a random pattern", "200", "random", "staggered")), // the best of many draws
			// Both parameters are open at once. The one route is a fit, and so is this.
			fitWith(drawnMappings("mapping of a random pattern, where one of equal routes is kept", "200", "ECMP"), "ECMP", "first"),
		},
		Run: runTable43,
	}
}

// otherwise are schemes that stand for those of table43Schemes.
var otherwise = map[string]scheme{
	"by pod":  hashed("ECMP by pod", fluid.ByPod),
	"by flow": hashed("ECMP by flow", fluid.ByFlow),
	"first": {"the first path", func(f *fluid.Fabric, all []hedera.Pair, seed uint64) ([]int, error) {
		return firstPaths(f, all, seed), nil
	}},
	"GFF, else first":  firstFitElse("GFF, else first", firstPaths),
	"GFF, else by pod": firstFit("GFF, else by pod", fluid.ByPod),
	"":                 table43Schemes[0].scheme,
}

func runTable43(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
	mappings := 200
	out := &papers.Outcome{}
	if o.Quick {
		mappings = 20
		out.Settings = append(out.Settings, chosen("mappings", fmt.Sprint(mappings), "quick"))
	}
	runs := make([][len(table43Schemes)]table43Run, len(table43Rows))
	each := make([][][len(table43Schemes)]table43Run, len(table43Rows)) // by row and mapping
	err := papers.Each(ctx, o, len(table43Rows), func(i int) error {
		each[i] = make([][len(table43Schemes)]table43Run, mappings)
		for n := range mappings {
			seed := derive(o.Seed, n)
			for s, scheme := range table43Schemes {
				if as := o.As(scheme.name); as != scheme.name {
					scheme.scheme = otherwise[as]
				}
				one, err := transfer(table43Rows[i].pattern, scheme.scheme, seed)
				if err != nil {
					return err
				}
				each[i][n][s] = one
			}
		}
		all := each[i]
		if percent, one := quantileOf(o); one {
			n, err := mappingAt(table43Rows[i].pattern, mappings, percent, o.Seed)
			if err != nil {
				return err
			}
			all = all[n : n+1]
		}
		for _, mapping := range all {
			for s, one := range mapping {
				runs[i][s].gb += one.gb / float64(len(all))
				runs[i][s].ms += one.ms / float64(len(all))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, row := range table43Rows {
		control := runs[i][len(table43Schemes)-1].ms
		for s, scheme := range table43Schemes {
			label := row.pattern.name + ", " + scheme.name
			out.Rows = append(out.Rows,
				papers.Within(label, "bandwidth, GB/s", row.gb[scheme.column], runs[i][s].gb, tolerance),
				papers.Ratio(label, "time, of the non-blocking switch's", row.ms[scheme.column]/row.ms[3], runs[i][s].ms, control, tolerance).Own())
		}
		gb := func(s int) float64 { return runs[i][s].gb }
		out.Rows = append(out.Rows, papers.OrderAs(row.pattern.name, []string{"non-blocking", "SA", "GFF", "ECMP"},
			[]float64{row.gb[3], row.gb[2], row.gb[1], row.gb[0]}, []float64{gb(3), gb(2), gb(1), gb(0)}))
	}
	explain(out, o, "the thesis' ECMP has, to judge by strides of 4 and 8, one path for all that a pod sends to another: where one of equal routes is kept, and nothing is hashed, most of its figures come out; its GFF did worse than ours where not all flows fit, and its mapping that is not bijective left more hosts without a sender than a mean one, to judge by its non-blocking switch; why GFF did we do not know")
	return out, nil
}

// mappingAt is the number of the mapping at a quantile.
func mappingAt(p pattern, mappings int, percent float64, seed uint64) (int, error) {
	t, f, err := fabricOf(fatTree(4))
	if err != nil {
		return 0, err
	}
	like := make([]likeness, mappings)
	for n := range like {
		to, err := p.make(t, derive(seed, n))
		if err != nil {
			return 0, err
		}
		like[n] = likenessOf(f, to)
	}
	return atQuantile(like, percent), nil
}

// transfer places the flows of a pattern, and has each send 1 MB.
func transfer(p pattern, s scheme, seed uint64) (r table43Run, err error) {
	t, f, err := fabricOf(fatTree(4))
	if err != nil {
		return r, err
	}
	to, err := p.make(t, seed)
	if err != nil {
		return r, err
	}
	all := pairs(to)
	paths, err := s.place(f, all, seed)
	if err != nil {
		return r, err
	}
	for _, rate := range f.MaxMin(all, paths) {
		r.gb += rate * payloadPart / 8000
	}
	source, err := workload.NewClosed(workload.ClosedConfig{
		Senders: workload.Hosts(t), To: workload.To(to), Sizes: workload.Fixed(1_000_000), Rounds: 1})
	if err != nil {
		return r, err
	}
	result, err := fluid.Run(fluid.Config{
		Fabric: f, Workload: source, Duration: time.Minute,
		Scheduler: fluid.Static(func(t *fluid.Transfer) int { return paths[t.Src] }),
	})
	if err != nil {
		return r, err
	}
	r.ms = float64(result.Mean) / 1e6 / payloadPart
	return r, nil
}
