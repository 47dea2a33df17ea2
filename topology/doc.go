// Package topology describes Clos fabrics: who is wired to whom, what every
// node is called and addressed, which switches can bounce the packets of a
// pair, which path a bounced packet takes, and the static routing table of
// every node.
//
// A Topology is computed, not stored: node and link numbers are arithmetic on
// the shape, so a fat-tree of 65,536 hosts costs as much memory as one of 16.
// It is immutable; Without returns another one that shares the shape and
// knows of links that are down. All methods are safe for concurrent use.
//
// The package is pure: no I/O, no clock, no goroutine.
//
// Sources: DRB §2.1, §3.1.2, §4.1; Al-Fares, thesis §3.1.2 and §3.1.5.
package topology
