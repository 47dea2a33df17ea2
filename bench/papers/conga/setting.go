package conga

import (
	"fmt"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/bench/sim/spray"
	"weft/bench/sim/tcp"
	"weft/bench/sim/workload"
	"weft/resequencer"
	"weft/topology"
)

// What had to be chosen, once for all experiments of the paper.
const (
	linkDelay   = 12 * time.Microsecond
	bufferMs    = 13. / 3 // of each port
	window      = 1 << 20
	rtoMin      = 200 * time.Millisecond
	longestFlow = 100_000_000
	// aboutPercent is the tolerance of figures that the text gives with a tilde, as
	// the most of a curve.
	aboutPercent = papers.Plotted
	similar      = 10 // percent
)

// What the paper calls small and large (§5.2.1).
const (
	smallBytes = 100_000
	largeBytes = 10_000_000
)

var common = []papers.Parameter{
	{Name: "CONGA", Value: "Q=3, tau=160 µs, flowlet gap 500 µs, metrics age in 10 ms"},
	{Name: "traffic", Value: "Poisson arrivals, from every host to hosts of other racks; load is the payload's part of what leaves can send up with nothing down"},
	{Name: "ECMP", Value: "switch-ecmp: a hash of the flow, every uplink alike whatever its rate"},
	{Name: "link delay", Value: linkDelay.String(), Chosen: true, Why: "not stated; eight of them make the round trip of about 100 µs of §1"},
	{Name: "ports", Value: "room for 13/3 ms at their rate; hosts' own have no bound", Chosen: true,
		Why: "not stated; a path has three, and 13 ms is the most it takes (§3.6)"},
	{Name: "TCP", Value: "NewReno with SACK, window 1 MB, initial window 10, least retransmission timeout 200 ms, 1,500 byte packets", Chosen: true,
		Why: "Linux 2.6 with autotuning in the paper, its default timeout (§5.3); we have neither its CUBIC nor its offloads"},
	{Name: "connections", Value: "one for each flow", Chosen: true, Why: "the paper's are kept open, and so begin with larger windows"},
	{Name: "longest flow", Value: "100 MB: what is longer in the distribution is of that size, and the rate of arrivals follows", Chosen: true,
		Why: "a flow of 1 GB outlasts the run; of the data mining trace flows above 35 MB keep 92 % of the bytes (paper: 95 %)"},
	{Name: "resequencer", Value: "weft's, for weft's policies; none with ECMP's, WCMP's and CONGA's switches", Chosen: true, Why: "as each is meant"},
	{Name: "about", Value: "50 % of tolerance on figures that the text gives as the most of a curve", Chosen: true, Why: "curves are plotted, not tabled"},
}

func settings(own ...papers.Parameter) []papers.Parameter {
	return append(own, common...)
}

// The compared schemes, by the names of policies.
const (
	ecmp   = "switch-ecmp"
	conga  = "switch-conga"
	host   = "conga"
	presto = "presto"
	drb    = "drb"
)

var labels = map[string]string{
	ecmp: "ECMP", conga: "CONGA", host: "weft's conga, at hosts", presto: "presto", drb: "drb",
}

var policies = []string{ecmp, conga, host, presto, drb}

// traffic is a distribution of flow sizes by the paper's name.
type traffic struct{ name, cdf string }

var (
	enterprise = traffic{"enterprise", "enterprise_conga"}
	dataMining = traffic{"data mining", "datamining_vl2"}
	webSearch  = traffic{"web search", "websearch_dctcp"}
)

func (t traffic) sizes() (*workload.CDF, error) {
	c, err := workload.LoadCDF(t.cdf)
	if err != nil {
		return nil, err
	}
	return c.Truncate(longestFlow), nil
}

// parameter says where sizes come from.
func (t traffic) parameter() papers.Parameter {
	return papers.Parameter{Name: t.name, Value: t.cdf, Chosen: true, Why: "digitised by others; the paper has a plot"}
}

// times of a run: flows begin until arrivals, those from warmup on are counted, and
// drain is how long they may take then.
type times struct{ warmup, arrivals, drain time.Duration }

func (t times) parameter() papers.Parameter {
	return papers.Parameter{
		Name: "time", Value: fmt.Sprintf("flows that begin from %v to %v; then %v to end", t.warmup, t.arrivals, t.drain),
		Chosen: true, Why: "as much as a minute of one core allows; the paper's runs are five, of a length not stated",
	}
}

// run is one simulation.
type run struct {
	fabric *topology.Topology
	policy string
	traffic
	load float64
	times
}

func (r run) config(seed uint64) (sim.Config, error) {
	sizes, err := r.sizes()
	if err != nil {
		return sim.Config{}, err
	}
	to, err := workload.Uniform(r.fabric, workload.OtherRack)
	if err != nil {
		return sim.Config{}, err
	}
	flows, err := workload.NewPoisson(workload.PoissonConfig{
		Senders: workload.Hosts(r.fabric), To: to, Sizes: sizes, Until: r.arrivals, Seed: seed,
		PerSecond: workload.FlowsPerSecond(r.load, workload.FabricMbit(r.fabric.Whole()), sizes),
	})
	if err != nil {
		return sim.Config{}, err
	}
	c := sim.Config{
		Topology: r.fabric, Seed: seed,
		Duration: r.arrivals + r.drain, Warmup: r.warmup,
		Delay: linkDelay, Queues: queues(r.fabric),
		Policy: r.policy, TCP: tcp.Config{WindowBytes: window, RTOMin: rtoMin},
		Workload: flows,
	}
	if spray.Reorders(r.policy) && r.policy != conga {
		c.Resequencer = &resequencer.Config{}
	}
	return c, nil
}

// queues are those of every rate that occurs.
func queues(t *topology.Topology) (all []sim.Queue) {
	seen := make(map[float64]bool)
	for l := range t.Links() {
		if rate := t.Rate(l.ID); !seen[rate] {
			seen[rate] = true
			all = append(all, sim.Queue{RateMbit: rate, Bytes: int(bufferMs * rate * 1e3 / 8)})
		}
	}
	return all
}
