// Package encap turns bytes into tunnel headers and back: IPv4 and IPv6 in either of them
// (RFC 2003, 2473, 4213) with the ECN rules of RFC 6040, stacks of output ports as SRv6
// micro-SIDs (RFC 9800) or MPLS labels (RFC 3032), datagrams of the UDP tunnel, with a MAC
// or encrypted, and the probes that tell a host which paths are alive.
//
// The outer destination names a bouncing switch. The inner packet arrives there
// unchanged, and the plain FIB routes it on (DRB §3.1.1, §4.1). Labels name every
// switch's output port instead. So the sender alone decides the path, and the switches on
// it need no routes for it (Luopan §3.3). A node that gets a packet without further
// labels routes it on.
//
// The package is pure: no I/O, no clock, no goroutine, no allocation for a packet. Its
// functions work in place on the caller's bytes and keep no reference to them. On any
// bytes they return an error rather than panic.
//
// # Why it is so
//
// A stack of labels ends where only one way is left, as IP-in-IP does: at the bouncing
// switch, in VL2 at the aggregation switch behind it, since a spine's routes know two
// ways (topology.PathSet.Choices). So the links below carry no header. With labels as far
// as the destination's edge switch the kernel's TCP had 3.3 % less goodput than over
// IP-in-IP; with the shorter stack, 2.5 % less (medians). Receivers need nothing.
//
// ECN passes every step by RFC 6040: it is copied to the outer header when a packet is
// wrapped, and back when it is unwrapped. Netstack has no ECN; the kernel's TCP reacts to
// it.
//
// An outer IPv6 header has flow label 0, whatever is inside. RFC 6438 wants a label that
// varies with the flow, since switches hash it. Here that would take away from the sender
// what it has chosen, and from probes that they take the way of data (ip6.go).
package encap
