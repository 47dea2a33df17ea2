// Package resequencer restores the order of TCP segments that took different
// paths, below TCP: a segment that arrives ahead of its turn is held until the
// gap before it is filled or a time has passed.
//
//	arrives     1   3   4   2          5   7   8    ... Hold ...   6
//	delivered   1           2 3 4      5            7 8            6
//
// Nothing is ever dropped or duplicated: every packet pushed comes out once, and
// whatever cannot be explained is delivered at once. A segment can be late or
// early, never lost, by a mistake in here. A segment that occupies no sequence
// space, such as a pure acknowledgement, never waits. A hole is waited for once:
// when its time is up it is declared lost, the flow goes on behind it, and TCP
// asks for what is missing.
//
// # Disciplines
//
// Reordering and loss look alike at first. The disciplines tell them apart by:
//
//   - Sequence: time alone. Every gap is held (DRB §5).
//   - Presto: the flowcell (SIGCOMM 2015). Its packets take one path, which
//     keeps their order, so a gap within one is loss and told to TCP at once;
//     a gap between two may be reordering and is held.
//   - Juggler: time, and the phase of the flow (EuroSys 2016). Data in order
//     waits, too, so that more can be merged with it; after a loss nothing is
//     held until it is repaired.
//
// The number of the flowcell is a hint in the packet (flowcell.Number). The
// numbers of a flow are believed once they have been shown to count, and no
// longer once they were shown wrong. Until then, and for senders that do not
// number, Presto is Sequence. It can make a segment wait less than Sequence
// would, but never longer.
//
// Two departures from Presto are deliberate. A retransmission does not move the
// receiver on to its flowcell, since it carries the number of its time of sending
// and all the flowcells on their way would become old ones, which are not held.
// And a copy of a held segment waits beside it. If it were delivered at once, TCP
// would report by SACK that the segments between are missing, and a tail loss
// probe would turn into a recovery.
//
// Segments that are further from their flow than its sender can be, such as a
// stranger's who guesses sequence numbers, are delivered at once and move nothing:
// see window.go.
//
// # How long a packet waits
//
// No packet stays longer than Config.Hold after it was pushed, with Juggler no
// longer than Hold and Merge, if Expire is called at NextDeadline. This holds
// however many holes a flow has: the time of each runs from the arrival of the
// first packet behind it, beside the others' and not after them, and when one is
// given up, all that is before it leaves as well. A packet that joins others that
// wait leaves with them, and a wait that is put off ends within Hold of its
// beginning. An estimate that rises counts for later holes alone.
//
// How long a hole is waited for is measured, flow by flow, and while a path is
// dead the holes that it makes are not waited for one after the other: see
// holdtime.go.
//
// # Structure
//
// An open-addressing table has the flows' state inline, and a segment in order
// costs one comparison. The packets held of a flow are a list of runs without
// gaps, about as many as there are paths. The run that grew last is tried first.
// The list is a skip list, so that an attacker who makes thousands of runs gains
// nothing. Runs that wait equally long form a queue, so that no heap is needed to
// know who is due.
//
// The package is pure: it takes the time, owns no goroutine, timer or socket,
// and once its tables have grown to their working size it allocates nothing.
// Memory is bounded by Config: what is held, in packets and bytes, per flow,
// per peer and in all, and the flows remembered, some 170 bytes each in a table
// that is at least a quarter full.
//
// # Why it is so
//
// A hole that began after the last one given up and is given up, too, is loss and not
// reordering. It quarters a guess and puts a measured time in doubt until something late
// comes after all. So an episode of losses costs about one hold, not one for each loss. Times
// are rounded up to MinHold doubled some times, so that runs which wait equally long form a
// queue, and ten queues need no heap.
//
// Flows hardly seen are forgotten before established ones, so that a flood of flows evicts
// itself. Then the order is Juggler's: inactive, active, recovering.
package resequencer
