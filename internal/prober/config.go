package prober

import (
	"net/netip"
	"time"

	"weft/encap"
	"weft/internal/probe"
	"weft/liveness"
	"weft/topology"
)

// Stats counts what a Prober has done.
type Stats = probe.Stats

// Config says whose paths are probed.
type Config struct {
	// Interface leads into the fabric.
	Interface string
	// Address is the host's own in Topology, its kernel's.
	Address netip.Addr
	// Topology is the fabric as it stands; SetTopology replaces it.
	Topology *topology.Topology
	// Carrier has probes take their paths: the one of data, since labels may fail
	// where routes do not. MPLS is refused. With SRv6 Gateway, the edge switch behind
	// Interface, is needed.
	Carrier encap.Carrier
	Gateway netip.Addr
	// Beside says that other Probers run on this host, for other carriers: this one
	// leaves to them the requests of peers that have come by theirs. Else it answers
	// all.
	Beside bool
	// Idle says that another carrier is in use instead: then this one is only kept proved,
	// at a tenth of the cost.
	Idle bool
	// MTU is that of liveness.Config; 0 means the interface's, below 0 that there are
	// no full-size probes.
	MTU int
	// Require is that of liveness.Config.
	Require bool
	// Interval, Multiplier, Budget and Floor are those of liveness.Config.
	Interval   time.Duration
	Multiplier int
	Budget     float64
	Floor      float64
	// Seed is secret, and another one each time.
	Seed uint64
	// Observe, if not nil, is called every 10 ms to tell the Watcher what has been
	// seen of the host's traffic.
	Observe func(*liveness.Watcher, time.Duration)
	// Deliver is called with every new topology, and whenever it changes to which racks
	// the carrier is used or how long packets may be, never twice at a time; first with
	// what is known at the beginning. It must not call Close or SetTopology.
	Deliver func(*topology.Topology, *liveness.Carriage)
}
