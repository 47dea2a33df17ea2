package daemon

import (
	"net/netip"

	"weft/encap"
	"weft/liveness"
	"weft/topology"
)

// byIPv6 is what the news of IPv6 packets' paths are by. It is no encapsulation of the
// configuration: where IPv4 goes by ipip, IPv6 goes by IPv6 in IPv6 (RFC 2473), and where it
// goes to SIDs, so does IPv6.
const byIPv6 = "IPv6 in IPv6"

// overhead6 is what goes before IPv6 packets, in bytes.
const overhead6 = encap.MaxOverhead

// carries6 reports whether IPv6 packets are carried, too, where the fabric has the addresses
// for that. They are not if nobody puts them back in order: IPv4 goes out of order where the
// configuration has it so, with a warning.
func (c *Config) carries6() bool { return !c.tunnels() && !c.unordered() }

// receives6 is the IPv6 address to which the order of what arrives is restored, whatever
// this host's own policy is. The zero Addr means none.
func (c *Config) receives6() (a netip.Addr) {
	if c.receives() && !c.tunnels() && c.fabric6 != nil {
		a = c.fabric6.Node(0).Addr
	}
	return a
}

// six is the fabric that IPv6 packets are carried through; nil if there is none.
func (c *Config) six() *topology.Topology {
	if !c.carries6() {
		return nil
	}
	return c.fabric6
}

// diverted6 is the fabric through which the dataplane may carry IPv6, nil if there is none.
func (c *Config) diverted6() *topology.Topology {
	if c.offloads() {
		return nil
	}
	return c.six()
}

// address6 is the host's IPv6 address in the fabric, if its packets are carried.
func (c *Config) address6() (a netip.Addr) {
	if t := c.six(); t != nil {
		a = t.Node(0).Addr // the host is the first node of a graph's view
	}
	return a
}

// views are a fabric as the host's addresses of both families see it.
type views struct {
	fabric  *topology.Topology // nil: BGP has told nothing yet
	fabric6 *topology.Topology // nil: host or fabric have no IPv6
}

// course is what IPv6 packets go by.
type course struct {
	topology *topology.Topology
	carriage *liveness.Carriage // nil: nothing is proved yet
}

// plain reports whether packets to a rack's prefix go plain.
func (s course) plain(rack netip.Prefix) bool {
	if s.topology == nil || s.carriage == nil {
		return true
	}
	edge, ok := s.topology.RackAt(rack.Addr())
	return ok && s.carriage.Plain(edge)
}

// sameFabric reports whether two views, which may be nil, are of one fabric.
func sameFabric(t, u *topology.Topology) bool {
	if t == nil || u == nil {
		return t == u
	}
	_, same := t.Diff(u)
	return same
}
