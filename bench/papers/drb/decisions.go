package drb

import (
	"fmt"
	"slices"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/bench/sim/workload"
	"weft/topology"
)

// windowOf is windows of other sizes for every connection.
func windowOf(about []string, ends string, kilobytes ...int) papers.Decision {
	d := papers.Decision{Parameter: "window", About: about, Ends: ends}
	for _, k := range kilobytes {
		d.Values = append(d.Values, papers.WindowOf(kb(k), k<<10))
	}
	return d
}

// theirs is why no other window is plausible where the paper states one.
const theirs = "it is the stated 256 KB, or the 65,535 bytes of a TCP without window scaling; what lies between is fitted"

// windowsFitted is windowOf of which the first sizes are fitted: the paper states none of them.
func windowsFitted(about []string, ends string, fitted []int, others ...int) papers.Decision {
	d := windowOf(about, ends, slices.Concat(fitted, others)...)
	for i := range fitted {
		d.Values[i].Fitted = true
	}
	return d
}

func kb(n int) string { return fmt.Sprintf("%d KB", n) }

func micros(n int) string { return fmt.Sprintf("%d µs", n) }

func delayOf(us int) time.Duration { return time.Duration(us) * time.Microsecond }

// dataAlone is what a mean resequencing delay is of by itself.
const dataAlone = "data packets"

// averaged is what the mean resequencing delay is of: the paper says of packets, and its
// resequencer sees acknowledgements, too, which have no gap to wait for. Fig. 6's VL2 it takes
// further from the paper. So it explains nothing in the fat-tree either, of which the figure
// has the other half, though there both delays come in: see toFatTree.
var averaged = papers.Decision{
	Parameter: "packets of which the resequencing delay is the mean", About: []string{"RB"},
	Ends: "there are no other packets", Discrete: true,
	Values: []papers.DecisionValue{{Name: "data and acknowledgements", Replace: map[string]string{dataAlone: "data and acknowledgements"}}},
}

// resequenced is the mean resequencing delay of a run, in µs.
func resequenced(o papers.Options, m measured) float64 {
	delay := mean(m.Resequencing)
	if o.As(dataAlone) != dataAlone {
		n := float64(m.Resequencing.TotalCount())
		delay *= n / (n + float64(m.AckPackets))
	}
	return delay
}

// wholeOnly is what a queue of the testbed holds by itself.
const wholeOnly = "packets received whole"

// counted is what the length of a testbed's queue counts.
var counted = papers.Decision{
	Parameter: "from when a packet counts in a queue", About: []string{"DRB", "RB", "ECMP"},
	Ends:   "a switch's memory is taken from the first byte at the earliest",
	Values: []papers.DecisionValue{{Name: "from its first byte", Replace: map[string]string{wholeOnly: "from the first byte"}}},
}

// alsoArriving is what queues have more if packets count while they arrive: on average a
// packet for as much of the time as the port is busy, and one at most.
func alsoArriving(o papers.Options, busy float64) (mean, most float64) {
	if o.As(wholeOnly) == wholeOnly {
		return 0, 0
	}
	return busy, 1
}

// hash is how the testbed's switches spread flows of ECMP.
var hash = papers.Decision{
	Parameter: "hash of ECMP", About: []string{"ECMP"},
	Values: []papers.DecisionValue{{Name: "the same at both layers of switches", Tune: func(c *sim.Config) {
		if c.Policy == "ecmp" {
			c.Known = polarised(c.Topology)
		}
	}}},
}

// chips are the testbed's switches as they are: each chip is four switches of 6 ports, so
// that the first two layers hash alike, and Windows Server 2008 R2, which tunes its window
// by itself, has a larger one than 256 KB. That it does so, up to 16 MB, is knowledge from
// outside the paper, which says nothing of it. Windows that double span that: from 2 MB on a
// window is more than the port holds.
var chips = papers.Decision{
	Parameter: "hash of switches that share a chip, and window that Windows tunes", About: []string{"ECMP"},
	Ends: "switches of one chip hash alike, and a window above 2 MB fills the port as one of 2 MB does",
	Values: []papers.DecisionValue{
		{Name: "alike, 512 KB", Tune: onChips(512)},
		{Name: "alike, 1 MB", Tune: onChips(1024)},
		{Name: "alike, 2 MB", Tune: onChips(2048)},
	},
}

func onChips(kilobytes int) func(*sim.Config) {
	return func(c *sim.Config) {
		if c.Policy == "ecmp" {
			c.Known = polarised(c.Topology)
		}
		c.TCP.WindowBytes = kilobytes << 10
	}
}

// asInF12 are both at once: the hash that is the same at both layers, and traffic that is all
// to other pods. The latter moves two of drb-f12's figures by five seeds, and was tried there
// before it was here. That the hash alone gives 324 Mbit/s for 279 was known when both were
// put together, what both give was not. The paper's permutation is random, so no plausible
// traffic avoids pods.
var asInF12 = papers.Decision{
	Parameter: "hash of ECMP, and traffic within pods as drb-f12's figures have it", About: []string{"RB", "ECMP"},
	Values: []papers.DecisionValue{{Name: "the same at both layers of switches; none", Tune: together(onChips(stated>>10), throughCores.Values[0].Tune), Fitted: true}},
}

// polarised is a testbed as flows see it where both layers hash alike: the second repeats
// the choice of the first, so of nine cores three are used.
func polarised(t *topology.Topology) *topology.Topology {
	const up = 3 // ports of a switch
	var unused []topology.LinkID
	for r := range up * up {
		if r/up == r%up {
			continue
		}
		links, err := linksOfCore(t, r)
		if err != nil {
			return t // no testbed
		}
		unused = append(unused, links...)
	}
	return t.Without(unused...)
}

// throughCores is a permutation of which every packet passes a core, as it would where
// those within a pod are bounced off a core, too.
var throughCores = papers.Decision{
	Parameter: "traffic within pods", About: []string{"up", " off", " back"},
	Ends: "there is none by a core, or all is",
	Values: []papers.DecisionValue{{Name: "none: all is to other pods", Tune: func(c *sim.Config) {
		to, err := workload.Permutation(c.Topology, workload.OtherPod, c.Seed)
		if err != nil {
			return
		}
		w, err := workload.NewClosed(workload.ClosedConfig{
			Senders: workload.Hosts(c.Topology), To: workload.To(to), Rounds: 1, Spread: testbedSpread, Seed: c.Seed,
		})
		if err == nil {
			c.Workload = w
		}
	}}},
}

// slowHops are links with more delay in DeTail's simulator.
func slowHops() papers.Decision {
	d := papers.Decision{Parameter: "delay of a hop", About: []string{"RB"}}
	for _, us := range []int{15, 30, 45} {
		d.Values = append(d.Values, papers.DecisionValue{Name: micros(us), Tune: func(c *sim.Config) { c.Delay = delayOf(us) }})
	}
	return d
}

// fitted are two parameters of DeTail's simulator, fitted to the six figures: it shows what
// would do.
var fitted = papers.Decision{
	Parameter: "delay of a hop and window, two parameters fitted to six figures", About: []string{"RB"},
	Values: []papers.DecisionValue{{Name: "30 µs and 160 KB", Tune: func(c *sim.Config) { c.Delay, c.TCP.WindowBytes = delayOf(30), 160<<10 }, Fitted: true}},
}

// ofMPTCP is a change of runs with subflows.
func ofMPTCP(change func(c *sim.Config)) func(*sim.Config) {
	return func(c *sim.Config) {
		if c.TCP.Subflows > 0 {
			change(c)
		}
	}
}

// shared is MPTCP's window.
var shared = papers.Decision{
	Parameter: "window of an MPTCP connection", About: []string{"subflows"},
	Values: []papers.DecisionValue{
		{Name: "128 KB", Tune: ofMPTCP(func(c *sim.Config) { c.TCP.WindowBytes = 128 << 10 })},
		{Name: "512 KB", Tune: ofMPTCP(func(c *sim.Config) { c.TCP.WindowBytes = 512 << 10 })},
		{Name: "1 MB", Tune: ofMPTCP(func(c *sim.Config) { c.TCP.WindowBytes = 1 << 20 })},
	},
}

// socketsOfNS3 is MPTCP as of sockets and ports of ns-3: two parameters at once.
var socketsOfNS3 = papers.Decision{
	Parameter: "MPTCP's windows and hosts' queues, two parameters", About: []string{"subflows"},
	Values: []papers.DecisionValue{{Name: "64 KB a subflow, and 128 KB as every port of 1 Gbit/s", Tune: ofMPTCP(func(c *sim.Config) {
		c.TCP.WindowBytes, c.HostQueueBytes = c.TCP.Subflows*effective, queueBytes
	})}},
}

// coupling is whether subflows' increases are linked.
var coupling = papers.Decision{
	Parameter: "increases of subflows", About: []string{"subflows"},
	Ends: "they are linked or not", Discrete: true,
	Values: []papers.DecisionValue{{Name: "each as a TCP", Tune: ofMPTCP(func(c *sim.Config) { c.TCP.Uncoupled = true })}},
}

// slotsAtFullLoad is how long a greatest queue is looked for by itself.
const slotsAtFullLoad = "slots at load 1"

// observed is for how long the appendix's greatest queues were: they grow with the time.
var observed = papers.Decision{
	Parameter: "slots in which the greatest queue is looked for", About: []string{"DRB"},
	Values: []papers.DecisionValue{{Name: "four times as many", Replace: map[string]string{slotsAtFullLoad: "four times as many"}}},
}

func atFullLoad(o papers.Options, slots int) int {
	if o.As(slotsAtFullLoad) != slotsAtFullLoad {
		return 4 * slots
	}
	return slots
}

// beginnings is what a short flow does first.
var beginnings = papers.Decision{
	Parameter: "beginning of a TCP", About: []string{"RB", "ECMP"},
	Values: []papers.DecisionValue{
		papers.InitialWindowOf("one segment first", 1),
		{Name: "with a handshake, then two segments", Tune: func(c *sim.Config) { c.TCP.Handshake, c.TCP.InitialWindow = true, 2 }},
		{Name: "with a handshake", Tune: func(c *sim.Config) { c.TCP.Handshake = true }},
		{Name: "with a handshake, then one segment, as in ns-3", Tune: func(c *sim.Config) { c.TCP.Handshake, c.TCP.InitialWindow = true, 1 }},
	},
}
