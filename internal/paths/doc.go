// Package paths says which paths lead to a rack, in which order a policy visits them,
// and what a packet's header says of one. It is the one home of these ideas for the
// dataplane, for the loader of the uplink's program and for the simulator. It is pure.
//
// Pairs of hosts with the same live paths share a Group. A key tells groups apart
// (AppendKey). By SRv6, the destinations of all paths to a rack are divided into heads,
// one a path, and one tail (Split), so that racks share groups, too.
package paths
