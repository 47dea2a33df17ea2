package probe

import (
	"net/netip"
	"time"

	"weft/encap"
	"weft/internal/bucket"
	"weft/liveness"
	"weft/topology"
)

// Config says whose paths are probed, and how. What has the name of a field of
// liveness.Config is that.
type Config struct {
	// Topology is the fabric as it stands; SetTopology replaces it.
	Topology *topology.Topology
	// Address is the host's own in Topology.
	Address netip.Addr
	// Carrier has probes take their paths: ipip or srv6.
	Carrier encap.Carrier
	// Beside says that other Drivers run on this host, for other carriers: this one
	// leaves to them what has come by theirs. Else it answers all.
	Beside bool
	// Idle says that another carrier is in use instead: then this one is only kept proved,
	// at a tenth of the cost.
	Idle bool
	// MTU of 0 means that there are no full-size probes.
	MTU              int
	Require, Rests   bool
	Interval         time.Duration
	Multiplier       int
	Budget, Floor    float64
	MinHold, MaxHold time.Duration
	MaxDestinations  int
	Seed             uint64
	// Echoes bounds the requests of peers that are answered, so that nobody makes this
	// host send without bound. The zero value means EchoRate a second.
	Echoes bucket.Bucket
	// Clock is what tells the times that the methods are given.
	Clock func() time.Duration
	// Write sends a whole packet, outer header included, which is the caller's until it
	// returns; via is the outer destination of IP-in-IP. An error says that the packet is
	// not sent.
	Write func(packet []byte, via netip.Addr) error
	// WriteBy is in place of Write where the host has several uplinks: from is the one that the
	// path begins with (topology.PathSet.From).
	WriteBy func(packet []byte, via netip.Addr, from int) error
	// Observe, if not nil, is called every 10 ms at least, while the Watcher rests every
	// 250 ms, before a Tick, to tell the Watcher what has been seen of the host's traffic.
	Observe func(*liveness.Watcher, time.Duration)
}

// EchoRate is how many requests of peers are answered a second unless Config says
// otherwise: as many as a thousand peers may send in a fat-tree of k=8.
const EchoRate = 20_000
