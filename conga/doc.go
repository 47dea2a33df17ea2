// Package conga chooses the least congested of all paths by what receivers
// report (CONGA §3), at the sending host rather than at its leaf switch.
//
// A packet names the kind of its path, its LBTag, and switches write into it how busy the
// busiest link was (Mark, DRE). The receiver remembers this in its Congestion-From table
// (Received) and hands it back in packets the other way (NextFeedback). The sender keeps it
// in its Congestion-To table (Feedback). A new flowlet takes the path with the least of
// max(local, remote) (Choose).
//
// flowcell.Cutter decides where a flowlet begins. It sees every packet and keeps the time
// of a flow's last one, which is more exact than the paper's valid and age bits, and its
// table is bounded. The caller of Choose keeps the path until the next flowlet, and then
// passes it as last.
//
// # At a host
//
// The paper's leaf has a row for every other leaf. Here a row is for any number that the
// caller has for a destination. Below it is called a rack.
//
// The paper's local metric is of a leaf's uplinks. A host has one uplink, and no view of
// its leaf's; its local metric is what it has itself sent by each tag (Sent) against
// Config.RateBits. The leaf's uplink is a switch's port like all others. It counts in the
// remote metric if switches write one. If they do not, every CE is 0, the local metric
// alone decides, and a new flowlet takes the path by which this host has sent least of
// late. Tags of two sets of paths, such as those inside a pod and out of it, may differ in
// meaning and yet share a local metric: they share most of their links, too.
//
// # Ageing
//
// A remote metric counts in full for Config.Age after its report, and then loses 1 at once
// and 1 more every eighth of Age: nothing is left at twice Age. So a path that looked
// congested is tried again (CONGA §3.3). For this the receiver must not repeat its
// knowledge forever, as the paper's would. It hands back a metric once for every time that
// it has heard of the tag, and not if that was longer than Age ago. So at most three Ages
// after the last packet by a tag its metric is forgotten everywhere. The next packet's
// report makes up for a lost one.
//
// # Lies
//
// Reports are believed. A report by a number moves only what is sent to that number, and
// package stack has a number for every host. So a host that reports 0 for some tags and 7
// for others draws the traffic to itself to paths of its choice. ECMP may do no less by
// accident, and the local metric counters it where other tags have been used less. 7, or 0,
// for all tags makes the choice local. The caller checks that a report is from the host
// that it names: stack wants it in a packet that acknowledges what was sent. Reports of
// hosts to which nothing is sent are refused. Within two Ages of its end a lie is
// forgotten.
//
// # Bounds
//
// Both tables hold Config.MaxDestinations racks, about 600 bytes for one in both;
// one of the idlest is forgotten for a new one, counted in Stats. Choose takes a
// few nanoseconds a path, whatever is in the tables, and nothing allocates once
// a rack is known.
//
// The package is pure: it takes the time as an argument, since an arbitrary
// start, and owns no goroutine, timer, socket or lock. A Table is not safe for
// concurrent use.
//
// # Why the inner IP ID
//
// The forward mark (LBTag, CE) and the feedback (tag, metric) take turns in the inner IPv4 ID
// of TCP packets, which DSCP 9 tells apart. The field is free in packets that cannot be
// fragmented (RFC 6864), survives a bounce or any decapsulation, costs no byte, and means
// nothing to anybody else. A field of the outer header would end at the bouncing switch.
// Acknowledgements carry feedback, too, or one-way flows would get none. A clock of 6 bits in
// the mark tells the resequencer what the ID tells it otherwise: what was sent later.
package conga
