// Package drb chooses bouncing switches: by digit reversal (DRB), round robin (RRB), at
// random (RB) or by the flow's hash (ECMP). DRB §3.1.2.
//
// Paths are numbered in a mixed radix system. Its digits are the choices made on the way
// up, the lowest layer's first: in a k-ary fat-tree path a₁a₂ is the a₂-th core of the
// a₁-th uplink. Any number of levels works.
//
// The package is pure: no I/O, no clock, no goroutine.
//
// # Why interleave
//
// With dead paths, digit reversal over a list with holes would send packets in clusters.
// interleave keeps the purpose of digit reversal: at every layer each branch is visited
// in proportion to its live paths, every prefix of the sequence is within one visit of
// each branch's exact share, and no branch is visited twice in a row where that can be
// avoided. This is a schedule of unit jobs on one machine, by earliest deadline. With all
// paths live it equals digit reversal.
//
// A Selector is DRB's single integer. A pair of hosts has one for data and one for pure
// acknowledgements, which all its flows share. UDP and other protocols whose order nobody
// restores keep to one path per pair of hosts. Their ports do not count, since fragments
// have none.
package drb
