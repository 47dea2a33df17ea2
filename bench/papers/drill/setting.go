// Package drill has the experiments of DRILL §3.2.3 and §4.
package drill

import (
	"fmt"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/bench/sim/tcp"
	"weft/resequencer"
	"weft/topology"
)

// What the paper states of its fabrics (§3.2.3, §4).
const (
	large    = "leaf-spine:leaves=48,spines=48,hosts=48,host-rate=10000,fabric-rate=10000"
	scaledUp = "leaf-spine:leaves=16,spines=4,hosts=20,host-rate=10000,fabric-rate=40000"
	scaled   = "leaf-spine:leaves=16,spines=16,hosts=20,host-rate=10000,fabric-rate=10000"
	slow     = "leaf-spine:leaves=4,spines=4,hosts=8,host-rate=1000,fabric-rate=1000"
	slowHalf = "leaf-spine:leaves=4,spines=4,hosts=4,host-rate=1000,fabric-rate=1000" // not stated: see byRack
)

// Smaller ones, to see that an experiment works.
const (
	largeQuick    = "leaf-spine:leaves=6,spines=6,hosts=6,host-rate=10000,fabric-rate=10000"
	scaledUpQuick = "leaf-spine:leaves=4,spines=3,hosts=15,host-rate=10000,fabric-rate=40000"
	scaledQuick   = "leaf-spine:leaves=4,spines=8,hosts=10,host-rate=10000,fabric-rate=10000"
)

// What it does not state, chosen once for all of its experiments.
const (
	linkDelay  = 500 * time.Nanosecond
	frames     = 100  // of a port's queue
	deep       = 1000 // shown beside
	frameBytes = 1500
	sizes      = "fb_webserver_intracluster"
	window     = 60_000 // bytes
	initial    = 3
	rtoMin     = 10 * time.Millisecond
	holdFrames = 200
	warm       = 4 // flows of the first of so many parts of the arrivals are not counted
)

// scheme is one of those compared.
type scheme struct {
	name   string
	policy string
	// restores: the receiver puts packets back in order.
	restores bool
	samples  int // of DRILL(d, m); 0: 2 and 1
	memory   int
	engines  int // 0: one
}

var (
	ecmp      = scheme{name: "ECMP", policy: "switch-ecmp"}
	wcmp      = scheme{name: "WCMP", policy: "switch-wcmp"}
	conga     = scheme{name: "CONGA", policy: "switch-conga"}
	presto    = scheme{name: "Presto", policy: "presto", restores: true}
	drill     = scheme{name: "DRILL", policy: "switch-drill", restores: true}
	drillAll  = scheme{name: "DRILL over all paths", policy: "switch-drill-all", restores: true}
	drillFlow = scheme{name: "per-flow DRILL", policy: "switch-drill-flow"}
	random    = scheme{name: "Random", policy: "switch-rb", restores: true}
	roundR    = scheme{name: "RR", policy: "switch-rr", restores: true}
)

// bare is a scheme whose receiver does without its shim.
func (s scheme) bare() scheme {
	s.name += " without shim"
	s.restores = false
	return s
}

// with is DRILL(d, m) with so many engines.
func (s scheme) with(samples, memory, engines int) scheme {
	s.name = fmt.Sprintf("DRILL(%d,%d), engines: %d", samples, memory, engines)
	s.samples, s.memory, s.engines = samples, memory, engines
	return s
}

// inEngines is RR in so many engines, each by itself.
func (s scheme) inEngines(n int) scheme {
	s.name = fmt.Sprintf("%s, engines: %d", s.name, n)
	s.engines = n
	return s
}

// setting is what all experiments share, and what one has besides.
func setting(more ...papers.Parameter) []papers.Parameter {
	return append([]papers.Parameter{
		stated("DRILL", "(2,1), one engine a switch, where nothing else is said"),
		stated("schemes", "ECMP, CONGA, DRILL, per-packet Random and RR in the switches; Presto's 64 KB flowcells by the hosts; a shim that restores order for Presto, DRILL, Random and RR"),
		chosen("flow sizes", sizes, "the paper's trace is Roy et al.'s, of which there are digitised distributions only; this one has flows of 1 MB at most, so short runs have its tail"),
		chosen("arrivals", "Poisson; from any host to any of another rack where nothing else is said", "the trace's times and pattern are not public"),
		chosen("load", "payload, of what the live links from the senders' leaves to spines carry, or their hosts' if that is less", "not defined; \"of the available core capacity\" with failures"),
		chosen("link delay", linkDelay.String(), "not stated"),
		chosen("port buffers", fmt.Sprintf("%d frames of %d bytes, tail drop", frames, frameBytes), "not stated; the default of INET's drop-tail queue, and Fig. 14c has drops at the first hop, which 1,000 frames, INET's other default, would not have. Hosts' own are unbounded"),
		chosen("TCP", fmt.Sprintf("NewReno with SACK, initial window %d, window %d bytes, least retransmission timeout %v, no handshake", initial, window, rtoMin),
			"Linux 2.6's initial window is 3 up to 2.6.38. INET gives the Network Simulation Cradle's stacks buffers of 80,000 bytes where nothing else is said (TCP_NSC.ned, stackBufferSize), and Linux offers three quarters of its buffer as window (tcp_adv_win_scale 2). The window is what decides: with 60,000 bytes drill-f6's 54 % and drill-f11a's 0.4 % come out, with 256 KB, our first choice, the paper's order in drill-f6, -f7 and -f9 does (one seed). The experiments of §4 had been run with 256 KB before, so neither is evidence alone. With Linux's 200 ms, timeouts alone would decide what a run of some ms measures"),
		chosen("shim", fmt.Sprintf("weft's resequencer; it holds for as long as a host's link takes for %d frames at most (240 µs at 10 Gbit/s), for a tenth of that at least, as measured", holdFrames),
			"not stated, it is Presto's in the paper; Juggler's is 50 to 500 µs at 10 Gbit/s"),
		chosen("counted", "flows that begin in the last three quarters of the arrivals; all are waited for", "queues have to build up"),
	}, more...)
}

func stated(name, value string) papers.Parameter { return papers.Parameter{Name: name, Value: value} }

func chosen(name, value, why string) papers.Parameter {
	return papers.Parameter{Name: name, Value: value, Chosen: true, Why: why}
}

// network is a fabric with nobody sending.
func network(seed uint64, t *topology.Topology, s scheme) sim.Config {
	c := sim.Config{
		Topology: t, Seed: seed,
		Delay:  linkDelay,
		Queues: []sim.Queue{{Bytes: frames * frameBytes}},
		Policy: s.policy,
		Spray:  sim.SprayOptions{DrillSamples: s.samples, DrillMemory: s.memory, DrillEngines: s.engines},
		TCP:    tcp.Config{WindowBytes: window, InitialWindow: initial, RTOMin: rtoMin},
	}
	if s.restores {
		hold := time.Duration(holdFrames * frameBytes * 8e3 / t.Rate(0)) // of a host's link
		c.Resequencer = &resequencer.Config{Hold: hold, MinHold: hold / 10}
	}
	return c
}
