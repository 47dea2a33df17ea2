// Package topology describes Clos fabrics: who is wired to whom, what every
// node is called and addressed, which switches can bounce the packets of a
// pair, which path a bounced packet takes and what it weighs, which paths are
// symmetric, the ports along a path as labels, and the static routing table of
// every node.
//
// A Topology is computed, not stored: node and link numbers are arithmetic on
// the shape, so a fat-tree of 65,536 hosts costs as much memory as one of 16.
// It is immutable; Without and With return snapshots that share the shape and
// own a bit per link. All methods are safe for concurrent use.
//
// Fat-trees, leaf-spine fabrics and VL2 have one shape: pods of edge and
// aggregation switches, and a group of cores above each aggregation switch's
// place. A leaf-spine is one pod without cores. VL2's aggregation groups are
// pods, its virtual spines are cores, and virtual spines of one place in all
// groups are one switch.
//
// The package is pure: no I/O, no clock, no goroutine.
//
// Sources: DRB §2.1, §3.1.2, §3.2, §4.1; Al-Fares, thesis §3.1.2, §3.1.5 and
// §3.1.8; DRILL §3.4; Luopan §3.3.
package topology
