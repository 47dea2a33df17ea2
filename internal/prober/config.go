package prober

import (
	"net/netip"
	"time"

	"weft/encap"
	"weft/internal/lookout"
	"weft/internal/probe"
	"weft/liveness"
	"weft/topology"
)

// Stats counts what a Prober has done.
type Stats = probe.Stats

// Config says which host's paths a Prober probes, and how.
type Config struct {
	// Interface leads into the fabric.
	Interface string
	// Uplinks, where the host has several, are their devices in the order of
	// topology.Topology.Uplinks, "" for one that does not exist. Each probe leaves by the one
	// that its path begins with, as the kernel's routes by that device have it, and Gateway has
	// no effect. Interface is one of them. nil: all leave by Interface.
	Uplinks []string
	// Address is the address of the host's kernel in Topology. Its family is that of all
	// that is sent and received: a host of both families has two Probers, each with a
	// Topology of its own (topology.FromGraph).
	Address netip.Addr
	// Topology is the fabric as it stands; SetTopology replaces it.
	Topology *topology.Topology
	// Carrier carries the probes. It is the carrier of data, since labels may fail where
	// routes do not. MPLS is refused. SRv6 needs Gateway, the edge switch behind
	// Interface, at an address of any family, which may be link-local.
	Carrier encap.Carrier
	Gateway netip.Addr
	// Beside says that other Probers run on this host, for other carriers. This one then
	// answers only requests by its own carrier. Otherwise it answers all.
	Beside bool
	// Idle says that another carrier is in use instead. This one is then only kept proved,
	// at a tenth of the cost.
	Idle bool
	// MTU is that of liveness.Config. 0 means the interface's. Below 0 there are no
	// full-size probes.
	MTU int
	// Require is that of liveness.Config.
	Require bool
	// Interval, Multiplier, Budget and Floor are those of liveness.Config.
	Interval   time.Duration
	Multiplier int
	Budget     float64
	Floor      float64
	// Seed must be secret, and different each time.
	Seed uint64
	// Awake keeps boomerangs at their full rate (liveness.Config.Rests): there is traffic that
	// is not of the kernel's TCP connections.
	Awake bool
	// Forwarded, if not nil, returns the hosts of the fabric to which this one forwards packets
	// that are not of its own sockets. It is called every half second.
	Forwarded func() []netip.Addr
	// Observe, if not nil, is called every 10 ms to tell the Watcher of the host's
	// traffic.
	Observe func(*liveness.Watcher, time.Duration)
	// Journal, if not nil, is told what is found out about paths.
	Journal *lookout.Journal
	// Deliver is called with the initial topology and Carriage, with every new topology,
	// and whenever a rack starts or stops using the carrier or its longest packet changes.
	// Calls do not overlap. Deliver must not call Close or SetTopology.
	Deliver func(*topology.Topology, *liveness.Carriage)
}
