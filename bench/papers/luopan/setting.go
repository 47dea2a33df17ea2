package luopan

import (
	"fmt"
	"slices"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/bench/sim/tcp"
	"weft/bench/sim/workload"
	"weft/policy"
	"weft/resequencer"
	"weft/topology"
)

// What the paper states (§4.1).
const (
	linkMbit    = 10_000
	bufferBytes = 300_000
	ecnBytes    = 100_000 // §4.4, with DCTCP
	expiryTime  = 40 * time.Microsecond
	sampled     = 2
	oversub     = 4
	webSearch   = "websearch_dctcp"

	mouse    = 64 << 10 // bytes; what is larger is medium
	elephant = 10_000_000
)

// What it does not, chosen once for all of its experiments.
const (
	linkDelay = 2700 * time.Nanosecond
	cache     = "fb_cachefollower_intracluster"
	window    = 128 << 10
	rtoMin    = 200 * time.Microsecond
	rtoFirst  = time.Millisecond
	probes    = 10_000 // flows of 2 KB that are added
	probeSize = 2000
	warm      = 3 // flows of the first of so many parts of the arrivals are not counted
)

// The compared schemes as we call them (§4.1).
const (
	luopanScheme = "luopan"
	presto       = "presto"
	random       = "rand"
	localScheme  = "switch-local"
	// published is luopan by samples alone. Weft's counts what it has sent since, too.
	published = "luopan-published"
	// timeless is luopan by samples alone that take no time, in racks' switches: what
	// the age of samples costs. The paper's have to travel, too.
	timeless = "switch-luopan"
)

var schemes = []string{luopanScheme, presto, random, localScheme}

// withTimeless are those of experiments about means.
var withTimeless = append(slices.Clip(schemes), timeless)

// setting is what all experiments share, and what one has besides or instead.
func setting(more ...papers.Parameter) []papers.Parameter {
	all := []papers.Parameter{
		{Name: "links", Value: "10 Gbit/s"},
		{Name: "port buffers", Value: "300 KB"},
		{Name: "luopan", Value: "2 samples, expiry 40 µs, one table per rack"},
		{Name: "traffic", Value: "Poisson; each flow from a random host to a random one of another pod"},
		{Name: "schemes", Value: "luopan; presto: 64 KB flowcells round robin; rand: 64 KB flowcells at random; switch-local: 64 KB flowcells to the least queue of each switch"},
		{Name: "weft's luopan", Value: "fills all paths by what samples show, weighed by its share of the traffic, and by the bytes sent since; luopan-published, where it is run, goes by samples alone", Chosen: true, Why: "weft's departure from the paper; the paper's figures are compared with weft's luopan unless a row says otherwise"},
		{Name: "link delay", Value: linkDelay.String(), Chosen: true, Why: "the paper's round trip of about 40 µs: 12 links and 7.5 µs to send a packet and its acknowledgement 6 times"},
		{Name: "load", Value: "payload, of what the links from racks to aggregation switches carry", Chosen: true, Why: "not defined; with 4:1 the hosts' links cannot be meant"},
		{Name: "tcp", Value: fmt.Sprintf("NewReno with SACK, initial window 10, window %d KB, no handshake", window>>10), Chosen: true, Why: "not stated; the window is what sockets have by default in ns-3, in which the paper simulates. A first run had 256 KB: twice the losses, and 99.9th percentiles that were timeouts"},
		{Name: "acknowledgements", Value: "a flow's are one flowcell of its scheme, until none comes for 1 ms", Chosen: true, Why: "§3.2 numbers flowcells by data sent, of which acknowledgements have none, has switches choose for every packet, and has them forget a flow after 1 ms; before, each took a random path of its own. switch-local and switch-luopan cut them by 64 KB on the wire, which few flows have"},
		{Name: "rto", Value: fmt.Sprintf("at least %v, %v before the first measurement", rtoMin, rtoFirst), Chosen: true, Why: "stated for incast only, where it is 200 µs; the first has to outlast several full queues. A first run had 10 ms, with which one timeout in a thousand flows hides all else"},
		{Name: "reordering buffer", Value: "weft's, Presto's discipline, 100 µs to 10 ms as measured", Chosen: true, Why: "its size is not stated (§5)"},
		{Name: "hosts' own queues", Value: "unbounded", Chosen: true, Why: "not stated"},
		{Name: "probes", Value: fmt.Sprintf("%d flows of 2 KB between pods are added", probes), Chosen: true, Why: "a 99.9th percentile needs more mice than a run of some ms has; Fig. 2 measures so; mice of the workload itself are told apart, and to the 99th percentile where there are fewer than 10,000"},
		{Name: "counted", Value: "flows that begin in the last two thirds of the arrivals; all are waited for", Chosen: true, Why: "queues have to build up; the paper does not say what it leaves out"},
	}
	for _, p := range more {
		if i := slices.IndexFunc(all, func(q papers.Parameter) bool { return q.Name == p.Name }); i >= 0 {
			all[i] = p
		} else {
			all = append(all, p)
		}
	}
	return all
}

func parameter(name, value string) papers.Parameter {
	return papers.Parameter{Name: name, Value: value}
}

func chosen(name, value, why string) papers.Parameter {
	return papers.Parameter{Name: name, Value: value, Chosen: true, Why: why}
}

// fatTree is one of k pods with so many times the hosts that it has room for.
func fatTree(k, over int) (*topology.Topology, error) {
	return topology.Parse(fmt.Sprintf("fat-tree:k=%d,hosts=%d,host-rate=%d,fabric-rate=%d,core-rate=%d",
		k, k/2*over, linkMbit, linkMbit, linkMbit))
}

// trial is one run.
type trial struct {
	top      *topology.Topology
	scheme   string
	sizes    *workload.CDF
	load     float64
	arrivals time.Duration
	probes   int
	// source replaces the traffic between pods, tune changes the rest.
	source func(seed uint64) (workload.Source, error)
	tune   func(*sim.Config)
}

// Classes of flows.
const (
	background = iota
	probe
	job
)

func (t trial) config(seed uint64, on func(sim.FlowEnd)) (sim.Config, error) {
	c := sim.Config{
		Topology: t.top,
		Seed:     seed,
		// All that has begun ends long before; what does not is counted.
		Duration: t.arrivals + time.Second,
		Warmup:   t.arrivals / warm,
		Delay:    linkDelay,
		Queues:   []sim.Queue{{Bytes: bufferBytes}},
		Policy:   t.scheme,
		AckUnits: true,
		TCP:      tcp.Config{WindowBytes: window, RTOMin: rtoMin, RTOInitial: rtoFirst},
		// The zero Config is Presto's discipline with weft's defaults.
		Resequencer: &resequencer.Config{},
		OnFlow:      on,
	}
	if t.scheme == luopanScheme || t.scheme == published {
		c.Policy = luopanScheme
		c.Spray.SamplesOnly = t.scheme == published
		c.Options = policy.Options{Samples: sampled, Expiry: expiryTime}
		c.Spray.RackSamples = true
	}
	if t.tune != nil {
		t.tune(&c)
	}
	make := t.source
	if make == nil {
		make = t.betweenPods
	}
	var err error
	c.Workload, err = make(seed)
	return c, err
}

// betweenPods is the paper's traffic and the probes.
func (t trial) betweenPods(seed uint64) (workload.Source, error) {
	to, err := workload.Uniform(t.top, workload.OtherPod)
	if err != nil {
		return nil, err
	}
	senders := workload.Hosts(t.top)
	flows, err := workload.NewPoisson(workload.PoissonConfig{
		Senders: senders, To: to, Sizes: t.sizes, Until: t.arrivals, Class: background, Seed: seed,
		PerSecond: workload.FlowsPerSecond(t.load, workload.FabricMbit(t.top), t.sizes),
	})
	if err != nil || t.probes == 0 {
		return flows, err
	}
	small, err := t.probing(senders, to, seed)
	if err != nil {
		return nil, err
	}
	return workload.Merge(flows, small), nil
}

func (t trial) probing(senders []topology.NodeID, to workload.Destination, seed uint64) (workload.Source, error) {
	from := t.arrivals / warm
	return workload.NewPoisson(workload.PoissonConfig{
		Senders: senders, To: to, Sizes: workload.Fixed(probeSize), From: from, Until: t.arrivals, Class: probe, Seed: seed + 1,
		PerSecond: float64(t.probes) / (t.arrivals - from).Seconds(),
	})
}
