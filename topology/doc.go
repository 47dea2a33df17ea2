// Package topology describes Clos fabrics: the wiring, names and addresses of all nodes,
// the bouncing switches of a pair of hosts, the path and the weight of each, which paths
// are symmetric, the ports along a path as labels, and the static routing table of every
// node.
//
// A Topology is computed, not stored: node and link numbers are arithmetic on the shape,
// so a fat-tree of 65,536 hosts costs as much memory as one of 16. It is immutable;
// Without and With return snapshots that share the shape and own a bit for each link. All
// methods are safe for concurrent use.
//
// Fat-trees, leaf-spine fabrics and VL2 have one shape: pods of edge and aggregation
// switches, and a group of cores above each aggregation switch's place. A leaf-spine is
// one pod without cores. VL2's aggregation groups are pods, its virtual spines are cores,
// and virtual spines of one place in all groups are one switch.
//
// The package is pure: no I/O, no clock, no goroutine.
//
// Sources: DRB §2.1, §3.1.2, §3.2, §4.1; Al-Fares, thesis §3.1.2, §3.1.5 and §3.1.8;
// DRILL §3.4; Luopan §3.3.
//
// # Why it is so
//
// Paths are numbered in the mixed radix system of the choices made on the way up, because
// digit reversal reverses those digits.
//
// VL2 (DRB §3.2): virtual spine v·d1/2+i is part of physical spine i. So link arithmetic
// is the fat-tree's, and only a spine's node and ports differ. A spine has an address for
// each of its virtual spines. A packet that was decapsulated at a virtual spine's address
// is routed by that virtual spine's own table, which makes the path the one of Theorem 3.
//
// Diff returns the links that differ between two snapshots. OnPaths says whether a link
// is on a pair's paths at all. With these two, a Host's pairs, the uplink's tables and a
// switch's routes are updated only where something has changed.
//
// Routes also avoids remote failures where another way up leads round them (thesis
// §3.1.8), and weighs next hops by what these can carry to a rack (WCMP). GroupedRoutes says
// which of them are symmetric (DRILL §3.4).
//
// A path's weight is the capacity of its slowest link, and every rule visits the path in
// proportion (PathSet.Weighted). Groups are found by hashing the pairs of racks that use
// a link.
//
// Packets to addresses that nobody has must not travel up and down until their TTL ends.
// An edge switch answers "unreachable" for addresses of its subnet that nobody has. A
// host does so for the address of its embedded stack while none runs. Switches above drop
// silently packets that they have no route for: an error would end a connect, although
// the next SYN would take another path. These routes have a high metric, so that a TUN's
// own route is preferred. Switches that weft does not configure need the same: a discard
// route, or no ICMP unreachables.
package topology
