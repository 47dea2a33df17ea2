// Package local chooses the path on which least of what this host has itself
// sent is left: DRILL(d, m) (DRILL §3.2), per packet, or Local Sampling (Luopan
// §4.1), per flowcell.
//
// A choice is the least loaded of d paths picked at random and of the m that were
// least loaded at the latest choice for the same rack. DRILL has it in a switch,
// which sees its queues. A host has one uplink and sees none, so a path's backlog
// is a model: a bucket into which goes what this host sends by the path, to
// whatever rack, since paths of one number share the links by which they leave the
// rack and the pod. It leaks at Config.RateBits divided by the number of paths:
// the share of this host if all of its rack send as much as it does, in a fabric
// without oversubscription. If it leaked at a whole link's rate, nothing would ever
// be left in it, for the host's own link lets nothing through faster than that.
// A bucket holds a megabyte, so that a path that comes back into use is
// not made to catch up on all it has missed.
//
// # Pitfalls
//
// More samples and more memory are not better: who compares the same queues at the
// same time runs to the same one, and DRILL(1, 20) is worse than DRILL(1, 2) (DRILL
// §3.2.3). Between hosts that happens less, since each sees its own
// sendings only; but a host learns nothing of others' queues, so this is spreading by
// bytes rather than by congestion: it evens out units of unequal size, and is
// worse than nothing where a far link is slow or dead (CONGA §2.4, Luopan §4.7).
// Without any memory DRILL can be unstable (DRILL §3.2.4), so there is always some.
// Among equals one picked at random goes before one remembered, or an idle host
// would never leave its path.
//
// # Bounds
//
// A bucket is 16 bytes, and there are at most MaxPaths; paths numbered higher share
// them. Racks remembered are at most Config.MaxDestinations, 24 bytes each; of two
// that want one place, the new one gets it, counted. A choice takes d+m steps, and
// a binary search for each path remembered. Nothing allocates once paths and
// racks are known.
//
// The package is pure: it takes the time as an argument, since an arbitrary start,
// and owns no goroutine, timer, socket or lock. A Table is not safe for
// concurrent use.
package local
