// Package luopan chooses the least congested of a few sampled paths (Luopan §3),
// for a host that does its rack's part.
//
// A Table knows the racks that there is traffic to. For each it keeps a round: d random
// live paths, d being 2, are probed at once, all by one host of the rack; with the first
// answer they are put to use, and flowcells prefer the least congested that has answered.
// After an expiry another d are probed. Old answers stay in use until there is a first
// answer to the new round, for at most as long again, or two round trips. Before the first
// answer and after the last, paths take turns.
//
// A round thus takes a round trip and an expiry; Overhead, the paper's formula, has
// only the latter.
//
// # How congested
//
// Everything is counted in bytes before a flowcell. Each round uses the best metric that
// all its answers have: the queues that switches have written into the probe; else the
// one-way delay above the least of the round, in which the difference of the two clocks
// cancels, since one host answers the whole round; else the round trip. Delays less than an
// eighth of a round trip apart are equal. A probe with a congestion mark is worse than all
// without. A probe that does not come back counts as a full queue: it waits in one, or
// there was no room.
//
// # Not to herd
//
// An expiry's flowcells on one path would make the congestion that probing looks for
// (Luopan, Appendix: k must stay small), and where several hosts see the same path empty,
// each would fill it. So the flowcells between two rounds fill all paths like vessels. A
// sampled path starts with this host's share of the difference between its backlog and the
// usual backlog of samples. Bytes sent since are added. Of other paths, and of samples
// without an answer, only the bytes sent by this host are known. They start with the usual
// backlog and take turns. The next flowcell goes to the least full path.
//
// The share is the host's rate to the rack divided by what d paths can carry, and one at
// most. Of n paths each host sends an n-th by each, and in a round d of n hosts look at a
// given path. So the shares of any number of hosts add up to one at most, and a difference
// is corrected once and not once by each host. So many streams nearly take turns, and so
// does a host that has sent nothing yet. The share needs Config.RateBits.
//
// Paths that were bad, or silent, when last sampled have no turn for a while; up to 8 a
// rack are remembered. In a model of hosts that share paths all this takes a half off the
// mean wait of random paths where the best sample alone makes it twice as long (TestHerd).
// Config.SamplesOnly is the paper's rule: the best sample alone, and random paths without
// one.
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
// Anything else resets it to one round trip at once. More than 64 KB sent do so before the
// round is over. A round without any answer is given up after the smoothed round trip and
// four times its deviation, as TCP does (RFC 6298), and four round trips at least. Rounds
// that nobody answers double the wait, up to a second, once all hosts known have been
// asked. A host that never answers is taken for one without weft. It is left alone for 10
// ms after a round, then twice as long each time, up to 16 s. A host that has answered
// before is left alone only after 60 silent rounds, since its paths may be dead. An answer,
// or a probe of its own (Heard), ends that at once. The latest 4,096 silent hosts are
// remembered. An answer that comes after its round says nothing about paths. It says how
// long round trips have become, so that a table catches up with queues that are longer than
// its rounds. The latest 8 probes without an answer are remembered for this. Racks without
// choices are forgotten after Idle.
//
// # Whom to believe
//
// An answer counts if its token is outstanding, its path is the one asked about and it
// comes from the host that was asked. So a host that lies can affect only flowcells that
// this host sends to its rack: it makes them prefer, or shun, some of the d paths that the
// Table drew, for one round. The next round asks another of the latest 4 hosts with
// traffic. It cannot name a path or revive a dead one, whose probes do not reach it. It
// cannot slow sampling beyond MaxExpiry and a second, nor its own by silence beyond 16 s,
// nor make sampling faster than the budget. Any message costs O(d) and no memory.
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
