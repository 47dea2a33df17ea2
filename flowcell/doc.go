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
package flowcell
