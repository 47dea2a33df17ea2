package dataplane

import (
	"net/netip"
	"time"

	"weft/topology"
)

// Observer takes a Gateway's observations of paths. *liveness.Watcher is one.
type Observer interface {
	// Active says that there is traffic to an address of a host. Hosts are named as
	// topology.HostAt names them.
	Active(host, address netip.Addr, now time.Duration)
	// Sent says how many TCP segments a path to dst has carried since the last call.
	Sent(host netip.Addr, path, packets int)
	// Lost says how many of the segments that a path has carried were sent again.
	Lost(host netip.Addr, path, packets int, now time.Duration)
}

// Observe reports to o what the Gateway has seen since the last call, if
// GatewayConfig.Evidence is set. Call it every few milliseconds. o must not call the
// Gateway. The Gateway does not see TCP that the uplink's program cuts, nor the paths of
// packets that the program encapsulates. IPv6 has Observe6.
func (g *Gateway) Observe(o Observer, now time.Duration) { g.egress.Report(o, now) }

// Topology returns the topology in use, of IPv4; nil in a Tunnel.
func (g *Gateway) Topology() *topology.Topology { return g.egress.Topology() }
