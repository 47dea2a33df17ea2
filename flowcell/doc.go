// Package flowcell knows flows: it reads the five-tuple and the TCP fields of
// an IP packet, hashes five-tuples, and names the units into which a flow may
// be cut before a path is chosen for each.
//
// The package is pure: no I/O, no clock, no goroutine. Its functions keep no
// reference to the byte slices they are given.
package flowcell
