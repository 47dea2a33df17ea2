// Package backlog chooses the path with the least backlog of this host's own
// packets: DRILL(d, m) (DRILL §3.2), per packet, or Local Sampling (Luopan §4.1),
// per flowcell.
//
// A choice is the least loaded of d paths picked at random and of the m that were least
// loaded at the latest choice for the same rack. DRILL runs in a switch, which sees its
// queues. A host has one uplink and sees no queue, so a path's backlog is a model: a bucket
// into which goes all that this host sends by the path, to any rack, since paths of one
// number share the links by which they leave the rack and the pod. It leaks at
// Config.RateBits divided by the number of paths: the share of this host if all of its rack
// send as much as it does, in a fabric without oversubscription. If it leaked at a whole
// link's rate, it would always be empty, since the host's own link is no faster. A bucket
// holds a megabyte, so that a path that comes back into use need not catch up on all it has
// missed.
//
// # Pitfalls
//
// More samples and more memory are not better. Choosers that compare the same queues at the
// same time run to the same one, and DRILL(1, 20) is worse than DRILL(1, 2) (DRILL §3.2.3).
// Between hosts this happens less, since each sees only its own packets. But a host learns
// nothing of others' queues. So this spreads by bytes and not by congestion. It evens out
// units of unequal size, and it is worse than nothing where a far link is slow or dead
// (CONGA §2.4, Luopan §4.7). Without any memory DRILL can be unstable (DRILL §3.2.4), so
// there is always some. Among equals, a path picked at random comes before a remembered
// one, or an idle host would never leave its path.
//
// # Bounds
//
// A bucket is 16 bytes, and there are at most MaxPaths; paths numbered higher share them.
// At most Config.MaxDestinations racks are remembered, 24 bytes each. If two racks map to
// one place, the new one gets it, and that is counted. A choice takes d+m steps, and a
// binary search for each path remembered. Nothing allocates once paths and racks are known.
//
// The package is pure: it takes the time as an argument, since an arbitrary start,
// and owns no goroutine, timer, socket or lock. A Table is not safe for
// concurrent use.
package backlog
