package thesis

import (
	"context"
	"fmt"

	"weft/bench/papers"
	"weft/bench/sim/fluid"
	"weft/hedera"
)

// Of the control loop (thesis §4.4.4).
const (
	computeMs    = 100
	switchMs     = 0.010 // latency of a switch
	entryBytes   = 72    // of OpenFlow
	controlPorts = 48    // of a switch of the control network
	lastHopGbit  = 10
	printedMs    = 0.05 // half of what the table's last digit is
)

var table47Rows = []struct {
	k  int
	ms [3]float64 // by table47Flows
}{
	{16, [3]float64{100.2, 100.9, 101.7}},
	{32, [3]float64{101.4, 106.8, 113.5}},
	{48, [3]float64{104.6, 122.8, 145.5}},
}

var table47Flows = [3]int{1, 5, 10}

func table47() papers.Experiment {
	return papers.Experiment{
		Name: "hedera-t4.7", Source: "thesis §4.4.4, Table 4.7",
		Title: "the length of the control loop beyond its 100 ms of computation: computed, as in the thesis",
		Setting: []papers.Parameter{
			stated("computation", "100 ms, assumed"),
			stated("control network", "48-port switches of 10 µs each, the last hop 10 Gbit/s and full"),
			stated("messages", "72 bytes for each flow's entry"),
			chosen("layers of the control network", "the fewest whose tree joins all switches", "the thesis says: a traditional tree (§4.3.1)"),
			chosen("reports", "one for each flow, by its source's edge switch", "the scheduler polls edge switches (§4.3.4)"),
			chosen("updates", "one for each switch that has a choice on a flow's way: two between pods, one within", "not stated, and chosen by the table: it grows by 164 ns a flow, which at 10 Gbit/s are 2.85 entries. As all nine figures are one slope, none of them is evidence"),
			chosen("traffic", "each flow to any other host", "not stated"),
			chosen("compared", "what is above 100 ms, which the table gives to 0.1 ms", "the rest is assumed"),
		},
		Mutants: []papers.Mutant{
			{Name: "no switch is told of new paths", About: []string{"flows"}, Replace: map[string]string{"updates": ""}},
			{Name: "no switch reports its flows", About: []string{"flows"}, Replace: map[string]string{"reports": ""}},
		},
		Decisions: []papers.Decision{
			{Parameter: "switches that are told of a flow's path", About: []string{"flows"},
				Ends: "at least one of a flow that is moved, at most all on its way",
				Values: []papers.DecisionValue{
					{Name: "one", Replace: map[string]string{"updates": "one"}},
					{Name: "all on its way", Replace: map[string]string{"updates": "all"}},
				}},
			{Parameter: "switches that report a flow", About: []string{"flows"},
				Ends:   "its edge switch or all on its way",
				Values: []papers.DecisionValue{{Name: "all on its way", Replace: map[string]string{"reports": "all"}}}},
		},
		Run: runTable47,
	}
}

func runTable47(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
	sizes := table47Rows
	out := &papers.Outcome{}
	if o.Quick {
		sizes = sizes[:1]
		out.Settings = append(out.Settings, chosen("fabric", "1,024 hosts", "quick"))
	}
	ours := make([]float64, len(sizes)*len(table47Flows))
	err := papers.Each(ctx, o, len(ours), func(i int) (err error) {
		ours[i], err = controlMs(o, sizes[i/len(table47Flows)].k, table47Flows[i%len(table47Flows)])
		return err
	})
	if err != nil {
		return nil, err
	}
	for i, ms := range ours {
		size, flows := sizes[i/len(table47Flows)], table47Flows[i%len(table47Flows)]
		label := fmt.Sprintf("%d hosts, flows per host: %d", fatTreeHosts(size.k), flows)
		beyond := size.ms[i%len(table47Flows)] - computeMs
		out.Rows = append(out.Rows,
			papers.Between(label, "beyond 100 ms, ms", beyond-printedMs, beyond+printedMs, ms, tolerance).Fitted())
	}
	out.Because = "the table's nine figures are one slope, by which the number of entries for each flow was chosen: that they come out is no evidence"
	return out, nil
}

// controlMs is how long reports and updates take, in ms.
func controlMs(o papers.Options, k, perHost int) (float64, error) {
	t, f, err := fabricOf(fatTree(k))
	if err != nil {
		return 0, err
	}
	all, err := uniform(t, perHost*f.Hosts(), o.Seed)
	if err != nil {
		return 0, err
	}
	entries := 0
	for _, p := range all {
		entries += entriesOf(o.As("reports"), f, p, 1) + entriesOf(o.As("updates"), f, p, choices(f, p))
	}
	transfer := float64(entries) * entryBytes * 8 / (lastHopGbit * 1e6)
	return transfer + 2*float64(controlLayers(fatTreeSwitches(k)))*switchMs, nil
}

// entriesOf is how many switches send, or get, a flow's entry.
func entriesOf(rule string, f *fluid.Fabric, p hedera.Pair, usual int) int {
	switch rule {
	case "":
		return 0
	case "one":
		return 1
	case "all":
		return 2*choices(f, p) + 1
	}
	return usual
}

// choices is how many switches choose on a pair's way.
func choices(f *fluid.Fabric, p hedera.Pair) int {
	switch {
	case f.Rack(p.Src) == f.Rack(p.Dst):
		return 0
	case f.Pod(p.Src) == f.Pod(p.Dst):
		return 1
	}
	return 2
}

// controlLayers is how many layers a tree of the control network's switches has that
// joins so many others: each has one port above.
func controlLayers(switches int) int {
	layers, joined := 1, controlPorts-1
	for joined < switches {
		layers++
		joined *= controlPorts - 1
	}
	return layers
}
