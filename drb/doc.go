// Package drb chooses bouncing switches: by digit reversal (DRB), round robin
// (RRB), at random (RB) or by the flow's hash (ECMP). DRB §3.1.2.
//
// Paths are numbered in a mixed radix system whose digits are the choices made
// on the way up, the lowest layer's first: in a k-ary fat-tree path a₁a₂ is the
// a₂-th core of the a₁-th uplink. Any number of levels works.
//
// The package is pure: no I/O, no clock, no goroutine.
package drb
