// Package pacing slows connections of this host's kernel that make a switch's queue too long:
// the reaction points of quantized congestion notification (IEEE 802.1Qau; thesis §5.3.3).
//
// A Host takes the switches' signed messages (encap.Feedback) from a UDP socket. Package qcn decides
// which it believes and how fast a connection may send, and hostprog.Pacer carries that out: it
// sets the connection's highest rate, SO_MAX_PACING_RATE, by which the kernel's TCP sends by
// its own timer. A connection that was limited once is paced by that timer until it ends, then
// at a rate that is not limited.
//
// Paced are TCP connections over IPv4 of the network namespace, whatever carries their packets.
// Not paced are UDP, IPv6, the TCP of weft's own stack, and what the kernel forwards for
// others: the sockets are elsewhere.
//
// Rejected: departure times (EDT) set by the program at the uplink. They need the queueing
// discipline fq there, which not every kernel has, and hold super-segments in its memory rather
// than in TCP's.
package pacing
