package dataplane

import (
	"net/netip"
	"time"

	"weft/topology"
)

// Observer is told what a Gateway has seen of paths. *liveness.Watcher is one.
type Observer interface {
	// Active says that something is sent to an address of a host.
	Active(host topology.NodeID, address netip.Addr, now time.Duration)
	// Sent says how many TCP segments a path to it has carried since the last time.
	Sent(host topology.NodeID, path, packets int)
	// Lost says how many of those that a path has carried were sent again.
	Lost(host topology.NodeID, path, packets int, now time.Duration)
}

// Observe tells o what has been seen since the last call, if GatewayConfig.Evidence
// is set. Call it every few milliseconds. o must not call the Gateway. TCP that the
// uplink's program cuts does not pass the Gateway. Of what the program encapsulates,
// the paths are not known.
func (g *Gateway) Observe(o Observer, now time.Duration) { g.egress.Report(o, now) }

// Topology returns the topology in use; nil in a Tunnel.
func (g *Gateway) Topology() *topology.Topology { return g.egress.Topology() }
