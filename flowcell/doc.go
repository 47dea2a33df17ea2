// Package flowcell knows flows: it reads the five-tuple and the TCP fields of
// an IP packet, hashes five-tuples, remembers something of each flow in a
// bounded Table, and cuts flows into the units for which paths are chosen. It
// owns the Number by which a packet tells to which flowcell it belongs.
//
// The package is pure: no I/O, no clock, no goroutine. Its functions keep no
// reference to the byte slices they are given.
package flowcell
