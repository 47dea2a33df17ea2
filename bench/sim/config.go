package sim

import (
	"time"

	"weft/bench/sim/aqm"
	"weft/bench/sim/tcp"
	"weft/bench/sim/workload"
	"weft/policy"
	"weft/resequencer"
	"weft/topology"
	"weft/topology/graph"
)

// Config is one run. Times are simulated.
type Config struct {
	// Topology is the fabric. All of its links have rates. Links that are down in it are
	// down from the start, and all hosts and switches know it.
	Topology *topology.Topology
	// Graph is a fabric that is data, in place of Topology. Policy is then one of hosts that
	// looks neither at congestion nor at groups of paths, and there are no Failures. Where a
	// path leaves the switches a choice, they hash flows as those of switch-ecmp do.
	Graph *graph.Graph
	// Known is the fabric as hosts and switches believe it to be, if it differs from
	// Topology: the same with other rates. So links may be slow without anybody knowing.
	Known *topology.Topology
	// Parallel makes so many consecutive spines of a leaf-spine one switch, with as many links
	// to each leaf: a spine sends a packet down by any of its live links, by a hash of the
	// flow. 0 or 1: each is a switch of its own. A policy of hosts does not make use of it:
	// its path is a link up and the one down of the same spine.
	Parallel int
	Seed     uint64

	// Duration is how long the run takes; it ends earlier when the Workload has no more
	// flows and all have ended. Nothing is measured before Warmup.
	Duration, Warmup time.Duration

	Delay time.Duration // propagation of a link, plus the switch's own delay
	// Queues are those of ports, by the rate of their link. The Queue with rate 0 is for
	// all other rates.
	Queues []Queue
	// HostQueueBytes is the size of a host's own queue; 0: unbounded.
	HostQueueBytes int

	// Policy is one of weft's, which hosts carry out, or one of spray.SwitchNames, which
	// switches carry out.
	Policy  string
	Options policy.Options
	Spray   SprayOptions
	// AckUnits makes a flow's acknowledgements a unit of the policy of hosts, where units
	// are flowcells or flowlets, as Luopan's are (Luopan §3.2). Otherwise each has a path of
	// its own, by the policy's Rule (DRB §5).
	AckUnits bool
	// Resequencer is every host's; nil: none.
	Resequencer *resequencer.Config

	TCP tcp.Config
	// SpreadSubflows gives each subflow of a connection (TCP.Subflows) a path that no other
	// one has, as long as there are any. Otherwise the Policy sees a flow in each.
	SpreadSubflows bool
	// Connections is how many connections lead from each host to each other one. A flow takes
	// one of them at random and waits there until those before it have ended, which counts as
	// its time, too. A connection keeps its window (tcp.Memory), one of several subflows on
	// other paths. 0: each flow has one of its own, as those
	// that are Alone always do.
	Connections int
	Workload    workload.Source
	// OpenLoop sends packets that nobody acknowledges, beside the Workload, which may then
	// be nil.
	OpenLoop *OpenLoop

	Failures []Failure

	// OnFlow, if not nil, is called for every flow that has ended.
	OnFlow func(FlowEnd)
	// OnArrival, if not nil, is called for every packet of data that arrives, before a
	// resequencer sees it: with the number of its flow, or of open loop of its host, and with
	// how many packets that flow had sent before it. A flow that begins when another one has
	// ended may have its number.
	OnArrival func(now time.Duration, flow, sent uint32)
	// OnSample is called every SampleEvery, from Warmup on.
	SampleEvery time.Duration
	OnSample    func(now time.Duration, v View)
}

// SprayOptions are options of policies that policy.Options does not have.
type SprayOptions struct {
	// RackSamples makes the hosts of a rack share luopan's samples, as in the paper, where
	// the rack's switch samples (Luopan §3.2). Otherwise each samples for itself.
	RackSamples bool
	// SamplesOnly makes luopan follow samples alone, as in the paper (Luopan §3.2).
	// Otherwise it also counts what was sent since.
	SamplesOnly bool
	// Turns has paths take turns, from which luopan's samples depart; see package luopan.
	Turns bool
	// SampleAge is how old switch-luopan's samples are when they come into use; 0: they
	// take no time.
	SampleAge time.Duration
	// Drill is DRILL(d, m) with so many engines a switch (DRILL §3.2); 0: 2, 1, 1.
	DrillSamples, DrillMemory, DrillEngines int
	// DrillBlind is for how long engines do not see one another's packets; 0: for as long as
	// the port takes to send each.
	DrillBlind time.Duration
	// Tau is the time constant of CONGA's rate estimators (CONGA §3.6). 0: 160 µs.
	Tau time.Duration
}

// Queue is the queue of a port.
type Queue struct {
	RateMbit float64
	Bytes    int // size; of the packet being sent, the bytes that are still to leave count
	ECNBytes int // packets that find more bytes are marked, if TCP understands marks; 0: none
	// Manage returns what manages the queue of a port, by its number and place, or nil for
	// nothing. It is called once for each port of this rate. nil: nothing does for any.
	Manage func(port, place int) aqm.Discipline
}

// OpenLoop is traffic without feedback.
type OpenLoop struct {
	// Load is each host's traffic as a share of its link.
	Load        float64
	PacketBytes int
	// To is each host's receiver, by the sender's number; a host that is its own receiver
	// sends nothing. nil: each packet goes to any host of another rack; a policy of hosts
	// then allows for 1,024 hosts.
	To []topology.NodeID
	// Slotted divides time into slots of a packet; in each a host begins a packet with
	// probability Load (DRB, Appendix B). Otherwise packets are a Poisson process.
	Slotted bool
}

// Failure is the failure of links, or their return.
type Failure struct {
	At    time.Duration
	Links []topology.LinkID
	Up    bool
	// Told is how long after At hosts and switches learn of it.
	Told time.Duration
}

// View is what a sample may read. A port is numbered 2·link for the way up,
// 2·link+1 for the way down.
type View interface {
	QueueBytes(port int) int           // waiting now
	SentBytes(port int) int64          // since the start
	Delivered(h topology.NodeID) int64 // payload handed to applications at a host, since the start
}
