// Package graph describes fabrics as data: switches and hosts by name, with the addresses,
// prefixes and AS numbers that an operator gave them, and the cables between them. Any Clos
// of two to five tiers of switches is a Graph: racks of different size, bundles of parallel
// links, links that are missing, hosts with several uplinks, several planes.
//
// A Graph is immutable and safe for concurrent use. Its numbers are dense: hosts first,
// then switches by tier, each in the order of the Spec. The package is pure: no I/O, no
// clock, no goroutine.
//
// # Paths
//
// A packet bounces at a switch: it goes up to it, loses its outer header there, and goes
// down. A pair of hosts bounces at all switches of one tier, the lowest at which any switch
// is above both (DRB §3.1.2). One such switch, reached by one uplink of the source, is one
// path. Paths are numbered from 0 in the order of the choices on the way up, lowest first.
// Those choices are the digits that DRB reverses. They need not be as many at all switches.
//
// Several ways may lead up to one switch, or down from it: parallel links, or two
// switches of a tier that are both wired to it. Which of these a packet takes is the
// choice of the switches' own ECMP. They are one path. It lives while one of its ways
// lives, and its rate is what its ways carry together when ECMP divides the traffic
// equally at each switch.
package graph
