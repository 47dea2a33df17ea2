package conga

import (
	"fmt"
	"slices"
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
	headerBytes = 40
	rtoMin      = 200 * time.Millisecond
	longestFlow = 100_000_000
	// simulatedInitial is the initial window of the simulations, in packets.
	simulatedInitial = 3
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
	{Name: "CONGA", Value: "Q=3, tau=160 µs, flowlet gap 500 µs, metrics age in 10 ms; CONGA-Flow: flowlet gap 13 ms"},
	{Name: "traffic", Value: "Poisson arrivals, from every host to hosts of other racks; load is the payload's part of what leaves can send up with nothing down"},
	{Name: "ECMP", Value: "switch-ecmp: a hash of the flow, every uplink alike whatever its rate"},
	{Name: "link delay", Value: linkDelay.String(), Chosen: true, Why: "not stated; eight of them make the round trip of about 100 µs of §1"},
	{Name: "ports", Value: "room for 13/3 ms at their rate; hosts' own have no bound", Chosen: true,
		Why: "not stated; a path has three, and 13 ms is the most it takes (§3.6)"},
	{Name: "TCP", Value: "NewReno with SACK, window 1 MB, initial window 10, least retransmission timeout 200 ms, 1,500 byte packets", Chosen: true,
		Why: "Linux 2.6 with autotuning in the paper, its default timeout (§5.3); we have neither its CUBIC nor its offloads"},
	{Name: "longest flow", Value: "100 MB: what is longer in the distribution is of that size, and the rate of arrivals follows", Chosen: true,
		Why: "a flow of 1 GB outlasts the run; of the data mining trace flows above 35 MB keep 92 % of the bytes (paper: 95 %)"},
	{Name: "resequencer", Value: "weft's, for weft's policies; none with ECMP's, WCMP's and CONGA's switches", Chosen: true, Why: "as each is meant"},
	{Name: "about", Value: "50 % of tolerance on figures that the text gives as the most of a curve", Chosen: true, Why: "curves are plotted, not tabled"},
}

// persistent is how many connections lead from a server to a client of the testbed (§5.2).
const persistent = 3

// kept are the connections of the testbed.
var kept = []papers.Parameter{
	{Name: "connections", Value: "3 from each host to each of the other rack, kept open"},
	{Name: "use of connections", Value: "a flow takes one of the three at random, and waits there for those before it", Chosen: true,
		Why: "not stated; the generator that an author published (empirical-traffic-gen) writes a request to a random connection, busy or not"},
	idle,
	mptcpModel,
}

var mptcpModel = papers.Parameter{
	Name: "MPTCP", Value: "8 subflows that ECMP hashes, each with 10 packets for an initial window, linked increases (RFC 6356). Those of a connection keep their windows as the others do, but are hashed anew for each flow", Chosen: true,
	Why: "stated are kernel 0.87 and 8 subflows; subflows of a kept connection have other paths for each flow only for simplicity",
}

var idle = papers.Parameter{
	Name: "idle connections", Value: "the window halves after each timeout of idleness, down to 10 packets, with which a connection also begins", Chosen: true,
	Why: "Linux's default (tcp_slow_start_after_idle); what was on a connection before the run is not known",
}

// single are those of the simulations.
var single = []papers.Parameter{
	{Name: "connections", Value: "one for each flow", Chosen: true, Why: "three for each pair are stated of the testbed (§5.2), nothing of the simulations (§5.5)"},
	{Name: "initial window", Value: fmt.Sprintf("%d packets", simulatedInitial), Chosen: true, Why: "the simulator has the TCP of Linux 2.6.26 (§5.5), whose first window is RFC 3390's; those of the testbed have 10"},
}

// onTestbed and simulated are the settings of the paper's two kinds of experiments.
func onTestbed(own ...papers.Parameter) []papers.Parameter {
	return slices.Concat(own, []papers.Parameter{parallelLinks}, kept, common)
}

func simulated(own ...papers.Parameter) []papers.Parameter {
	return slices.Concat(own, single, common)
}

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
	fabric
	connections int    // of a pair of hosts; 0: each flow has its own
	initial     int    // window, in packets; 0: 10
	policy      string // a scheme
	traffic
	load float64
	times
}

func (r run) config(seed uint64) (sim.Config, error) {
	sizes, err := r.sizes()
	if err != nil {
		return sim.Config{}, err
	}
	to, err := workload.Uniform(r.Topology, workload.OtherRack)
	if err != nil {
		return sim.Config{}, err
	}
	flows, err := workload.NewPoisson(workload.PoissonConfig{
		Senders: workload.Hosts(r.Topology), To: to, Sizes: sizes, Until: r.arrivals, Seed: seed,
		PerSecond: workload.FlowsPerSecond(r.load, workload.FabricMbit(r.Whole()), sizes),
	})
	if err != nil {
		return sim.Config{}, err
	}
	c := r.bare(seed)
	c.Workload = flows
	return c, nil
}

// bare is the configuration of a run without its traffic.
func (r run) bare(seed uint64) sim.Config {
	c := sim.Config{
		Topology: r.Topology, Parallel: r.parallel, Seed: seed,
		Duration: r.arrivals + r.drain, Warmup: r.warmup,
		Delay: linkDelay, Queues: queues(r.Topology),
		Connections: r.connections, TCP: tcp.Config{WindowBytes: window, InitialWindow: r.initial, RTOMin: rtoMin},
	}
	schemes[r.policy].set(&c, r.policy)
	if spray.Reorders(c.Policy) && !slices.Contains(spray.SwitchNames(), c.Policy) {
		c.Resequencer = &resequencer.Config{}
	}
	return c
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
