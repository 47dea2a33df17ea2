// Package fabric makes Linux machines into the switches of a Clos fabric.
//
// Plan says what one node must be configured with, and is pure: it can be
// printed as JSON or as ip and sysctl commands for a switch that weft does not
// run on. Apply (Linux) makes the network namespace it is called in match a
// plan. Package lab does so for a whole topology, with a network namespace per
// node. What a host needs besides its plan is in internal/hostprog and
// internal/hostsetup, which this package does not know.
//
// Forwarding is the kernel's: plain routes, and ECMP next hops for what is not
// encapsulated (DRB §4.1). Routes keeps the routes of a switch in step with a
// topology that changes. A bouncing switch removes the outer header of
// IP-in-IP packets addressed to it by the kernel's ipip device or, where the
// kernel has none, by an eBPF program on the ingress of each port.
//
// With Options.SRv6 or MPLS switches also forward by labels, output ports that
// packets carry along (Luopan §3.3), by a kernel route per port. Edge switches are
// then where labels come in and go: a program watches what hosts send with them,
// and carries congestion marks inside.
//
// With RoutingTwoLevel the last byte of the destination chooses the port up, in place of
// ECMP's hash (thesis §3.1.3), and a Classifier may choose one for each flow (§3.1.6).
//
// # Why it is so
//
// Links are unnumbered: a node has one address, and routes are "via PEER dev PORT onlink".
//
// The kernel's ECMP polarises across namespaces, since a packet keeps its hash. So each
// switch gets a seed of its own, and layer 4 fields are hashed
// (fib_multipath_hash_policy=3).
//
// The decapsulating program takes only packets whose inner source is the outer source: an
// open decapsulator is a relay for forged addresses (CVE-2025-23018). It drops nested
// packets and follows RFC 6040.
//
// A label names an output port. With micro-SIDs (RFC 9800) the destination is 5f00::/16, the
// block for SIDs (RFC 9602), then a byte for each label, port + 1, and fe for
// "decapsulate". It is an IPv6 header of 40 bytes without any extension. A switch forwards it
// by one route per port (End.X with NEXT-C-SID) and takes it off by End.DX4. The route of a
// failed port is gone, and packets with its label are dropped: labels are not repaired,
// hosts choose other paths. MPLS (label 16 + port) is for kernels that encapsulate by route,
// since a TUN carries IP only. It is untested on a switch that is not Linux.
//
// Labels pass every filter, so the edge is closed. A program at the edge switches' ports to
// hosts takes only packets whose outer and inner source are the host's own, with nothing but
// IPv4 inside and no routing header, MPLS or second VLAN tag. All else to the block is
// dropped and counted. The same program, at all ports, copies a congestion mark inside before
// End.DX4, which the kernel does not. Where eBPF is refused, labels still forward, and Apply
// says that marks end with them and that the gate is open.
//
// A meter is a program at a port's egress. It keeps a virtual queue (a leaky bucket at the
// port's rate, thesis §5.2.1), adds it to samples, marks ECN, and raises the CE of CONGA's
// marks. It is told the shaper's burst and queue, or its estimate would be two packets too
// long and would grow over drops.
package fabric
