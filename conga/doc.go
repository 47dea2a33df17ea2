// Package conga chooses the least congested of all paths by the reports of receivers
// (CONGA §3), at the sending host rather than at its leaf switch.
//
// A packet carries a tag for its path, the LBTag, and switches write into it how busy the
// busiest link was (Mark, DRE). The receiver stores this in its Congestion-From table
// (Received) and returns it in packets the other way (NextFeedback). The sender stores it
// in its Congestion-To table (Feedback). A new flowlet takes the path with the least
// max(local, remote) metric (Choose).
//
// flowcell.Cutter decides where a flowlet begins. It sees every packet and keeps the time
// of a flow's last one, which is more exact than the paper's valid and age bits, and its
// table is bounded. The caller of Choose keeps the path until the next flowlet, and then
// passes it as last.
//
// # At a host
//
// The paper's leaf has a row for every other leaf. Here a row is for any number that the
// caller gives a destination. This number is called a rack below.
//
// In the paper the local metric is about a leaf's uplinks. A host has one uplink, and
// does not see its leaf's uplinks. Its local metric is what it has itself sent by each
// tag (Sent), relative to Config.RateBits. The leaf's uplink is a switch port like all
// others, and counts in the remote metric if switches write one. If they do not, every CE
// is 0 and the local metric decides alone: a new flowlet takes the path by which this
// host has recently sent least. Tags of two sets of paths, such as inside a pod and
// between pods, may differ in meaning and share a local metric: most of their links are
// the same.
//
// # Ageing
//
// A remote metric has full weight for Config.Age after its report. Then it loses 1 at
// once and 1 more every eighth of Age, and at twice Age nothing is left. So a path that
// looked congested is tried again (CONGA §3.3). For this the receiver must not repeat a
// metric forever, as the paper's receiver does. It returns a metric once for each packet
// that has brought it, and not if the packet is older than Age. So a tag's metric is
// forgotten everywhere at most three Ages after the last packet with that tag. If a
// report is lost, the next packet's report replaces it.
//
// # Lies
//
// Reports are believed. A report from a number affects only traffic to that number, and
// package stack has a number for every host. So a host that reports 0 for some tags and 7
// for others attracts its own traffic to paths of its choice. ECMP may do the same by
// accident, and the local metric counters it where other tags have been used less. A host
// that reports 7, or 0, for all tags leaves the choice to the local metric. The caller
// checks that a report is from the host that it names: stack requires it in a packet that
// acknowledges what was sent. Reports of hosts to which nothing is sent are refused. Two
// Ages after the last lie, it is forgotten.
//
// # Bounds
//
// Both tables hold Config.MaxDestinations racks, about 600 bytes for a rack in both. A
// new rack replaces one of the idlest, counted in Stats. Choose takes a few nanoseconds a
// path, whatever is in the tables, and nothing allocates for a known rack.
//
// The package is pure: it takes the time as an argument, since an arbitrary start, and
// owns no goroutine, timer, socket or lock. A Table is not safe for concurrent use.
//
// # Why the inner IP ID
//
// The forward mark (LBTag, CE) and the feedback (tag, metric) take turns in the inner
// IPv4 ID of TCP packets; DSCP 9 says that the ID is a mark. The field is free in packets
// that cannot be fragmented (RFC 6864), survives a bounce or any decapsulation, costs no
// byte, and means nothing to other hosts and switches. A field of the outer header would
// end at the bouncing switch. Acknowledgements carry feedback, too; otherwise one-way
// flows would get none. A clock of 6 bits in the mark tells the resequencer which packet
// was sent later, as the ID does otherwise.
package conga
