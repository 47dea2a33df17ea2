// Package resequencer restores the order of TCP segments that took different paths, below
// TCP. A segment that arrives ahead of its turn is held until the gap before it is filled
// or its hold ends.
//
//	arrives     1   3   4   2          5   7   8    ... Hold ...   6
//	delivered   1           2 3 4      5            7 8            6
//
// Nothing is ever dropped or duplicated: every packet pushed comes out once, and a packet
// that fits no rule is delivered at once. A mistake in here can make a segment late or
// early, but never lose it. A segment that occupies no sequence space, such as a pure
// acknowledgement, never waits. A hole is waited for once: when its time is up it is
// declared lost, the flow continues behind it, and TCP asks for the missing data.
//
// # Disciplines
//
// Reordering and loss look alike at first. The disciplines tell them apart in different
// ways:
//
//   - Sequence: by time alone. Every gap is held (DRB §5).
//   - Presto: by flowcell (SIGCOMM 2015). Its packets take one path, which
//     keeps their order, so a gap within a flowcell is loss, which TCP sees at
//     once; a gap between two flowcells may be reordering and is held.
//   - Juggler: by time, and the phase of the flow (EuroSys 2016). Data in order
//     waits, too, so that more can be merged with it; after a loss nothing is
//     held until it is repaired.
//
// The number of the flowcell is a hint in the packet (flowcell.Number). A flow's numbers
// are believed once they have proved to count, and only until they prove wrong. Before
// that, and for senders that do not number, Presto works as Sequence. It can make a
// segment wait less than Sequence would, but never longer.
//
// Two differences from Presto are deliberate. A retransmission does not move the receiver
// on to its flowcell. It carries the number of the time when it was sent again, so all
// flowcells on their way would become old ones, which are not held. And a copy of a held
// segment waits beside it. If it were delivered at once, TCP would report by SACK that
// the segments between are missing, and a tail loss probe would turn into a recovery.
//
// A segment that is further from its flow than its sender can be, for example one of a
// stranger who guesses sequence numbers, is delivered at once and moves nothing: see
// window.go.
//
// # How long a packet waits
//
// No packet stays longer than Config.Hold after it was pushed (with Juggler, Hold plus
// Merge) if Expire is called at NextDeadline. This holds however many holes a flow has.
// The time of each hole runs from the arrival of the first packet behind it, at the same
// time as the others'. When a hole is given up, everything before it leaves as well. A
// packet that joins others that wait leaves with them, and a wait that is extended ends
// within Hold of its beginning. An estimate that rises affects only later holes.
//
// The hold is measured for each flow. The holes that a dead path makes are not waited for
// one after the other. See holdtime.go.
//
// # Structure
//
// An open-addressing table has the flows' state inline, and a segment in order costs one
// comparison of five-tuples: push.go has the fast paths. The held packets of a flow are a list of runs without gaps, about as many
// as there are paths. The run that grew last is tried first. The list is a skip list, so
// that an attacker who makes thousands of runs gains nothing. Runs that wait equally long
// form a queue, so no heap is needed to find the next deadline.
//
// The package is pure: it takes the time as an argument and owns no goroutine, timer or
// socket. Once its tables have grown to their working size it allocates nothing. Config
// bounds memory: the packets and bytes held, per flow, per peer and in all, and the flows
// remembered, some 170 bytes each in a table that is at least a quarter full.
//
// # Why it is so
//
// A hole that began after the last one given up, and is given up itself, is loss and not
// reordering. It quarters a hold that is a guess, and puts a measured hold in doubt until
// a late packet comes. So an episode of losses costs about one hold, not one for each
// loss. Times are rounded up to MinHold times a power of two, so that runs which wait
// equally long form a queue, and ten queues need no heap.
//
// Flows that were hardly seen are forgotten before established ones, so a flood of flows
// evicts itself. Otherwise the order is Juggler's: inactive, active, recovering.
package resequencer
