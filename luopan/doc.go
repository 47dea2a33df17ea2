// Package luopan chooses the least congested of a few sampled paths (Luopan §3),
// for a host that does its rack's part.
//
// A Table knows the racks that there is traffic to. For each it keeps a round: d
// random live paths, d being 2, are probed at once, all by one host of the rack;
// with the first answer they are put to use, and flowcells prefer the least congested
// that has answered. After an expiry another d are probed. What is old stays in use
// until there is a first answer to the new round, for at most as long again, or two
// round trips. Before the first answer and after the last paths take turns.
//
// A round thus takes a round trip and an expiry; Overhead, the paper's formula, has
// only the latter.
//
// # How congested
//
// Everything is counted in bytes before a flowcell. By capability, decided for each
// round by what all its answers have: the queues that switches have written into
// the probe; else the one-way delay above the least of the round, which cancels the
// difference of two clocks, since one host answers the whole round; else the round
// trip. Delays less than an eighth of a round trip apart are equal. A probe with a
// congestion mark is worse than all without. One that does not come back counts as
// a full queue: it waits in one, or there was no room.
//
// # Not to herd
//
// An expiry's flowcells on one path would make the congestion that probing looks
// for (Luopan, Appendix: k must stay small), and where several hosts see the same
// path empty, each would fill it. So the flowcells between two rounds fill all paths
// like vessels. How full a sampled one is at first is this host's share of what it has
// more, or less, before it than samples have had of late; bytes sent since are added.
// Of the others, those that have not answered included, nothing is known but what was
// sent by them: they count as usual, and take turns. The next flowcell goes where
// least is.
//
// The share is what this host sends to the rack by what d paths can carry, and one at
// most. By each of n paths a host sends an n-th, and of those who do, d in n look at
// that path in a round: so their shares add up to one at most, however many they
// are, and what is amiss is mended once, not once by each. Many streams all but take
// turns thus, and so does a host that has sent nothing yet. It takes Config.RateBits.
//
// Paths that were bad, or silent, when last sampled have no turn for a while; up to 8
// a rack are remembered. In a model of hosts that share paths all this takes a half off
// the mean wait of random paths where the best sample alone makes it twice as long
// (TestHerd). Config.SamplesOnly is the paper's way: the best sample alone, and random
// paths without.
//
// # How often
//
// Config.Expiry, or, if that is 0, one round trip, smoothed, and MinExpiry at
// least. It doubles with every round, up to 16 times that and MaxExpiry, while
//
//   - every sample is above ¾ of the scale, or marked: more probes would only add
//     to it (Luopan §5);
//   - or this host sends less than a flowcell's 64 KB a round, and nobody chose, or
//     no sample is congested, or all are equal and as they were in the round before.
//
// Anything else brings it back to one at once, and more than 64 KB sent do so before
// the round is over. A round without any answer is given up after the smoothed round
// trip and four times its deviation, as TCP does (RFC 6298), and four round trips at
// least. Rounds that nobody answers double the wait, up to a second, once all hosts
// known have been asked. A host that never answers is taken for one without weft and
// left alone from round to round for 10 ms and then, doubled each time, for up to 16 s;
// one that has answered only after 60 silent rounds, for its paths may be dead. An
// answer, or a probe of its own (Heard), ends that at once. The latest 4,096 silent
// hosts are remembered. An answer that comes after its round says nothing of paths,
// but how long round trips have become, which is how a table catches up with queues
// that are longer than its rounds; the latest 8 probes without an answer are
// remembered for it. Racks without choices are forgotten after Idle.
//
// # Whom to believe
//
// An answer counts if its token is outstanding, its path is the one asked about and
// it comes from the host that was asked. So a host that lies can make its own rack's
// flowcells of this host alone prefer, or shun, some of the d paths that the Table
// drew, for one round; the next is another host's, of the latest 4 to whom there
// was traffic. It cannot name a path, revive a dead one (whose probes do not reach
// it), slow sampling beyond MaxExpiry and a second, or by silence its own beyond 16 s,
// or make it faster than the budget. Whatever comes in costs O(d) and no memory.
//
// # Who calls what
//
// The owner calls Choose with a flowcell's first packet, Sent for what is sent,
// Answer for what comes in, and Probes when Next says so, which any of them may
// bring forward. Nothing blocks, starts a goroutine or reads a clock.
//
// A rack takes some 850 bytes at d = 2 and 128 for each sample more, and 8 for each
// path up to 64 to count choices; up to twice that after growth.
//
// # Why probes are UDP
//
// The probe has Luopan's word (path ID, type, 7 bits of queue) in a UDP packet of data's own
// class, behind the IP header, since routers forward by that. A token keeps hosts off the
// path from answering. The packet also has the number of switches that wrote and the
// answerer's clock. So sampling works, less sharply, over switches that only forward.
//
// A host does its rack's part: its tables are per rack, its rounds are its own. In a rack of
// many hosts the paper's switch would sample once for all. Here every host pays (Overhead,
// with the host's link).
package luopan
