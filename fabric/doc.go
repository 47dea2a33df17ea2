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
package fabric
