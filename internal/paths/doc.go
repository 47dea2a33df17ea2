// Package paths computes which paths lead to a rack, in which order a policy visits them,
// and what a packet's header says for each. The dataplane, the loader of the uplink's
// program and the simulator share it. It is pure.
//
// Pairs of hosts with the same live paths share a Group. A key tells groups apart
// (AppendKey). With SRv6, the destinations of all paths to a rack are divided into heads,
// one for each path, and one tail (Split), so that racks share groups, too.
package paths
