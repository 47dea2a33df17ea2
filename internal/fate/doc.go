// Package fate finds out what becomes of TCP segments: by which path each went, which of
// them were sent again, and which the other end has acknowledged. It sees only what a
// host sends and what comes back, so it serves any TCP: a kernel's, netstack's and the
// simulator's. It is pure.
//
// Segments remembers the path of each segment. Again finds losses, for whoever looks for
// broken paths. A Heeded tells the policy.Selector of one flow what became of the flow's
// packets.
//
// Nothing here is certain. A segment that was sent needlessly again counts as lost, and
// a table that is full forgets. Whoever acts on it must stand a few errors.
package fate
