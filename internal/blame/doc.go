// Package blame infers which links, switches and hosts of a fabric lose packets, from what
// became of the packets of many paths.
//
// A packet crosses all places of its path, so a path loses at least what its worst place
// loses, and all paths over a lossy place lose alike. Losses asks for each place how much more
// likely the evidence is if this place loses packets than if it does not, blames the best
// explanation, takes what it explains as given, and asks again.
//
// Losses of a queue that overflows come in bursts, and a burst is less evidence than as many
// losses one by one. So the evidence against a place is divided by the dispersion of its losses:
// how much more they scatter from one slot of time to the next than independent losses
// would (the quasi-likelihood of regression). What all paths lose in common accuses none.
//
// The package is pure and keeps nothing between two calls.
//
// Sources: votes of the paths that lost packets, 007 (NSDI 2018); a path's success as the
// product of its links', NetBouncer (NSDI 2019). Rejected: 007's votes, which blame busy links
// of healthy fabrics, as they do not count what arrived.
package blame
