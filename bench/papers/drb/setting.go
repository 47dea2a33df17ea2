package drb

import (
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/bench/sim/spray"
	"weft/bench/sim/tcp"
	"weft/bench/sim/workload"
	"weft/resequencer"
	"weft/topology"
)

// What §5 states of its simulations, and what had to be chosen: once for all of
// them.
const (
	linkDelay   = 5 * time.Microsecond
	queueBytes  = 128 << 10 // per Gbit/s
	ecnBytes    = 32 << 10  // per Gbit/s
	hold        = 10 * time.Millisecond
	stated      = 256 << 10 // window
	effective   = 64 << 10
	startSpread = time.Millisecond
	rtoMin      = 10 * time.Millisecond
)

// Fabrics of §5.
const (
	fatTree24        = "fat-tree:k=24,host-rate=1000,fabric-rate=1000,core-rate=1000"
	fatTree8         = "fat-tree:k=8,host-rate=1000,fabric-rate=1000,core-rate=1000"
	vl2              = "vl2:d0=4,d1=64,d2=24,hosts=20,host-rate=1000,fabric-rate=5000,core-rate=5000"
	vl2Small         = "vl2:d0=4,d1=8,d2=8,hosts=20,host-rate=1000,fabric-rate=5000,core-rate=5000"
	overFatTree      = "fat-tree:k=24,hosts=24,host-rate=1000,fabric-rate=1000,core-rate=1000"
	overFatTreeSmall = "fat-tree:k=8,hosts=8,host-rate=1000,fabric-rate=1000,core-rate=1000"
	overVL2          = "vl2:d0=4,d1=64,d2=24,hosts=40,host-rate=1000,fabric-rate=5000,core-rate=5000"
	overVL2Small     = "vl2:d0=4,d1=8,d2=8,hosts=40,host-rate=1000,fabric-rate=5000,core-rate=5000"
)

var simulated = []papers.Parameter{
	{Name: "links", Value: "5 µs of propagation each"},
	{Name: "ports", Value: "128 KB per Gbit/s, tail drop; a host's own has no bound"},
	{Name: "packets", Value: "1,500 and 40 bytes, an acknowledgement for each; two selectors a pair, for data and acknowledgements"},
	{Name: "resequencer", Value: "by TCP sequence, 10 ms"},
	{Name: "resequencer", Value: "none with ECMP, which keeps the order of flows", Chosen: true,
		Why: "the paper has one for DRB, RRB and RB; behind one a hole is held as long as the least retransmission timeout is, which makes ECMP's losses timeouts"},
	{Name: "window", Value: "256 KB"},
	{Name: "window", Value: "64 KB", Chosen: true,
		Why: "the paper's own round trips rule 256 KB out: at 900 Mbit/s they are 2.3 ms, its 99th percentile is 0.8 ms; and ns-3 has had TCP's window scaling since 3.21 (2014), a year after the paper, so that its 256 KB were in all likelihood 65,535 bytes"},
	{Name: "TCP", Value: "NewReno with SACK's recovery, least retransmission timeout 10 ms", Chosen: true, Why: "not stated; the resequencer's time"},
	{Name: "starts", Value: "at random within the first 1 ms", Chosen: true, Why: "not stated"},
}

// settingOf adds what one experiment has of its own.
func settingOf(common []papers.Parameter, own ...papers.Parameter) []papers.Parameter {
	return append(own, common...)
}

// times are of a run: how long it takes, and how much of it is not measured.
type times struct{ duration, warmup time.Duration }

// network is §5's without ECN, nobody sending.
func network(o papers.Options, t *topology.Topology, policy string, tm times) sim.Config {
	c := sim.Config{
		Topology: t, Seed: o.Seed,
		Duration: tm.duration, Warmup: tm.warmup,
		Delay: linkDelay,
		Queues: []sim.Queue{
			{RateMbit: 5000, Bytes: 5 * queueBytes},
			{Bytes: queueBytes},
		},
		Policy: policy,
		TCP:    tcp.Config{WindowBytes: effective, RTOMin: rtoMin},
	}
	if spray.Reorders(policy) {
		c.Resequencer = inSequence(hold)
	}
	return c
}

// inSequence is the resequencer of §5, which holds for a fixed time.
func inSequence(hold time.Duration) *resequencer.Config {
	return &resequencer.Config{Discipline: resequencer.Sequence, Hold: hold, MinHold: hold}
}

// withECN has ports mark as §5.5 does, and TCP listen.
func withECN(c sim.Config) sim.Config {
	for i, q := range c.Queues {
		c.Queues[i].ECNBytes = q.Bytes / queueBytes * ecnBytes
	}
	c.TCP.ECN = true
	return c
}

// permute has every host send without end to another.
func permute(c sim.Config, spread time.Duration) (sim.Config, error) {
	to, err := workload.Permutation(c.Topology, workload.Anywhere, c.Seed)
	if err != nil {
		return c, err
	}
	c.Workload, err = workload.NewClosed(workload.ClosedConfig{
		Senders: workload.Hosts(c.Topology), To: workload.To(to), Rounds: 1, Spread: spread, Seed: c.Seed,
	})
	return c, err
}
