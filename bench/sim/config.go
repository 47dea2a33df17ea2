package sim

import (
	"time"

	"weft/bench/sim/tcp"
	"weft/bench/sim/workload"
	"weft/policy"
	"weft/resequencer"
	"weft/topology"
)

// Config is one run. Times are simulated.
type Config struct {
	// Topology is the fabric. All of its links have rates. Links that are down are
	// so from the start, and everybody knows.
	Topology *topology.Topology
	Seed     uint64

	// Duration is how long the run takes; it ends earlier when the Workload has no
	// more flows and all have ended. What happens before Warmup is not measured.
	Duration, Warmup time.Duration

	Delay time.Duration // propagation of a link, and what a switch takes
	// Queues are those of ports by the rate of their link. A rate of 0 stands for
	// all others.
	Queues []Queue
	// HostQueueBytes is the room in a host's own queue; 0: as much as it likes.
	HostQueueBytes int

	// Policy is one of weft's own, which hosts follow, or one of spray.SwitchNames,
	// which switches follow.
	Policy  string
	Options policy.Options
	Spray   SprayOptions
	// Resequencer is every host's; nil: none.
	Resequencer *resequencer.Config

	TCP      tcp.Config
	Workload workload.Source
	// OpenLoop sends packets that nobody acknowledges, besides the Workload, which
	// may then be nil.
	OpenLoop *OpenLoop

	Failures []Failure

	// OnFlow is told of every flow that has ended. Nil: nobody is.
	OnFlow func(FlowEnd)
	// OnSample is called every SampleEvery, from Warmup on.
	SampleEvery time.Duration
	OnSample    func(now time.Duration, v View)
}

// SprayOptions are of policies that policy.Options do not know.
type SprayOptions struct {
	// RackSamples: hosts of a rack share what luopan has sampled, as the paper has
	// it in the rack's switch (Luopan §3.2); else each samples for itself.
	RackSamples bool
	// SamplesOnly: luopan goes by samples alone, as the paper has it (Luopan §3.2);
	// else by what was sent since as well.
	SamplesOnly bool
	// Drill is DRILL(d, m) with so many engines a switch (DRILL §3.2); 0: 2, 1, 1.
	DrillSamples, DrillMemory, DrillEngines int
	// Tau is the time constant of CONGA's rate estimators (CONGA §3.6). 0: 160 µs.
	Tau time.Duration
}

// Queue is a port's.
type Queue struct {
	RateMbit float64
	Bytes    int // room; of the packet on the wire what has yet to leave counts
	ECNBytes int // packets that find more are marked, if TCP understands it; 0: none
}

// OpenLoop is traffic without feedback.
type OpenLoop struct {
	// Load is the part of its link that every host sends.
	Load        float64
	PacketBytes int
	// To is to whom each host sends, by its number, itself for nobody; nil: each
	// packet to any host of another rack, where a Policy of hosts' allows for 1,024
	// of them.
	To []topology.NodeID
	// Slotted: time goes in slots of a packet, in each of which a host begins one
	// with probability Load (DRB, Appendix B); else packets are a Poisson process.
	Slotted bool
}

// Failure is of links, or their return.
type Failure struct {
	At    time.Duration
	Links []topology.LinkID
	Up    bool
	// Told is how long after At hosts and switches know.
	Told time.Duration
}

// View is what a sample may look at. A port is numbered 2·link for the way up,
// 2·link+1 for the way down.
type View interface {
	QueueBytes(port int) int           // waiting now
	SentBytes(port int) int64          // since the start
	Delivered(h topology.NodeID) int64 // payload handed to applications at a host, since the start
}
