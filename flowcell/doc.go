// Package flowcell reads the five-tuple and the TCP fields of an IP packet, hashes
// five-tuples, keeps a value for each flow in a bounded Table, and cuts flows into the
// units for which paths are chosen. It owns the Number that says to which flowcell a
// packet belongs.
//
// The package is pure: no I/O, no clock, no goroutine. Its functions keep no reference to
// the byte slices they are given.
//
// # Why the IP ID
//
// A data packet's flowcell travels in the inner IPv4 ID. TCP's packets cannot be
// fragmented, so the field has no other use (RFC 6864). It survives the bounce, and a
// kernel that cuts a super-segment adds 1 for each segment, which is the index.
//
// Anybody may send any ID, so a receiver takes it as a hint. Two rules tell senders
// apart. Index 63 is never used: a plain sender that counts its packets in the ID uses it
// again and again. A sender that sprays packets or flowlets counts them and leaves out
// index 0, with which flowcells begin. Such a count is no flowcell number: 1,024 cells of
// one packet would wrap within a window. But it tells the receiver whether a packet that
// fills a hole was sent before the packets behind the hole (it was reordered) or after
// them (it was sent again).
//
// # Why the IPv6 flow label
//
// IPv6 has no ID outside an extension header, and switches drop packets with extension
// headers or take them through their processor (RFC 7872). The flow label is the only field
// that a sender may choose, that no checksum covers, and that nobody may change on the way
// (RFC 6437 §3). It also survives the bounce. But switches hash it, with the addresses, to
// choose among equal routes and links of a bundle. Linux does so by default
// (net.ipv6.fib_multipath_hash_policy 0).
//
// RFC 6437 §2 leaves it to the source what a flow is: the packets to which it gives one
// label. Here that is the unit that takes one path:
//
//   - a flowcell: all its segments have the number of the first, without the index;
//   - a flowlet: all its packets have the number that counts flowlets;
//   - a packet, where packets are sprayed: each has its own number;
//   - a flow: the label remains the one that the sender's TCP has chosen.
//
// So a switch that hashes the label never divides a unit. On the way up the outer header
// decides, whose label is 0 (weft/encap). Below the bounce, Clos fabrics have one way. Where
// there are parallel links, or another tier chooses, units spread over them, which is what
// they are for. The segments of a unit stay in order.
//
// What IPv4 has and IPv6 lacks is the index. It would divide flowcells. Measured with Linux
// as the switch and two next hops: of 16 flowcells of 45 segments that had an index each,
// all 16 were divided, 15 to 27 segments by the one way; of 16 whose segments had the number
// of the first, none, and 11 went by the one way (TestLabel_splitsOnlyUnits). It would
// also not survive a kernel that cuts a super-segment, which copies the label, and it would
// keep kernels without weft from merging segments, since they compare labels. A receiver
// can do without it: it has the sequence numbers. It cannot see that a flowcell was sent by
// two paths, and cannot tell from the number alone which segment of one flowcell was sent
// again. So it takes no delay of a path from a hole that a segment of the same flowcell
// fills, once it believes the numbers.
//
// A sender that knows nothing of weft keeps one label for a connection, or draws a new one
// after a timeout. Neither counts.
//
// Rejected: a destination option or hop-by-hop header, for the reason above; low bits of the
// hop limit, which are too few and change; ECN and DSCP, which have a use; the urgent
// pointer and the timestamp of TCP, which belong to TCP and to its checksum.
package flowcell
