// Package luopan chooses the least congested of a few sampled paths (Luopan §3). A host
// does here what the paper's rack switch does.
//
// A Table knows the racks that there is traffic to. For each rack it keeps a round: it
// probes d random live paths at once (by default two), all by one host of the rack. From the
// first answer on, flowcells prefer the least congested path that has answered. After an
// expiry, the next round probes another d paths. Old answers stay in use until the first
// answer to the new round, but at most as long again, or two round trips. Before the
// first answer and after the last, paths take turns.
//
// So a round takes a round trip and an expiry. Overhead, the paper's formula, counts only
// the expiry.
//
// # How congested
//
// Congestion is counted in bytes ahead of a flowcell. Each round uses the best metric
// that all its answers have:
//
//   - the queues that switches have written into the probe; else
//   - the one-way delay above the least of the round (one host answers the whole
//     round, so the difference of the two clocks cancels); else
//   - the round trip.
//
// Delays less than an eighth of a round trip apart are equal. A probe with a congestion
// mark is worse than all without. A probe without an answer counts as a full queue: it
// waits in one, or was dropped by one.
//
// # Not to herd
//
// If all flowcells of an expiry took one path, they would make the congestion that
// probing looks for (Luopan, Appendix: k must stay small). If several hosts saw the same
// path empty, each would fill it. So between two rounds flowcells level the paths. A
// sampled path starts with this host's share of the difference between its backlog and
// the usual backlog of samples. Bytes sent since are added. Of the other paths, and of
// samples without an answer, only the bytes that this host has sent are known. They start
// with the usual backlog and take turns. The next flowcell goes to the path with the
// least.
//
// The share is the host's rate to the rack divided by the capacity of d paths, at most
// one. If n hosts use n paths, each sends an n-th of its traffic by each path, and in a
// round d of the n hosts look at a given path. So the shares of any number of hosts add
// up to at most one, and all hosts together correct a difference once. So many streams
// nearly take turns, and so does a host that has sent nothing yet. The share needs
// Config.RateBits.
//
// Paths that were bad or silent when last sampled have no turn for a while; up to 8 a
// rack are remembered. In a model of hosts that share paths, these rules halve the mean
// wait of random paths, while the best sample alone doubles it (TestHerd).
// Config.SamplesOnly is the paper's rule: the best sample alone, and random paths without
// one.
//
// # Turns
//
// With Config.Turns paths take turns, each as many flowcells as the others, and samples say
// only when to depart from that: so age does less harm to them. A round probes the paths
// whose turn is next. The one with the least before it is taken first. A path that is worse
// than it by 4 units of queue or more loses its turn. A path that has less than is usual
// before it even with another flowcell takes one more. An order that has no switch's paths
// follow each other needs no more than their number (stride). A rack that nothing is sent to
// is not probed: its next flowcell takes its turn and has the ones after it probed.
//
// In a simulated fat-tree of 12 pods, 4:1, load 0.6, with samples of hosts' own, mean
// completion times are 6 % below random paths', where leveling has 2 % more, by a thirtieth
// of the probes; flowcells in turn without any sample have 10 to 12 % less. With a link of a
// leaf-spine down the path that is free has 36 % (leveling 30) and the mean is 23 % below
// random's (13). Leveling is better where many hosts with few flowcells share a path.
//
// # How often
//
// The expiry is Config.Expiry. If that is 0, it is one smoothed round trip, at least
// MinExpiry. It doubles with every round, up to 16 times that and MaxExpiry, while
//
//   - every sample is above ¾ of the scale, or marked: more probes would only add
//     to the congestion (Luopan §5);
//   - or this host sends less than a flowcell's 64 KB a round, and nobody chose, or
//     no sample is congested, or all are equal and unchanged since the round before.
//
// Anything else resets it to one round trip at once. More than 64 KB sent do so before
// the round is over.
//
// A round without any answer ends after the smoothed round trip and four times its
// deviation, as with TCP (RFC 6298), and after at least four round trips. Once all known
// hosts of the rack have been asked, each round without an answer doubles the wait, up to
// a second. A host that never answers counts as a host without weft. It is left alone for
// 10 ms after a round, then twice as long each time, up to 16 s. A host that has answered
// before is left alone only after 60 silent rounds, since its paths may be dead. An
// answer, or a probe of its own (Heard), ends that at once. The latest 4,096 silent hosts
// are remembered.
//
// An answer that comes after its round says nothing about paths, but its round trip
// counts. So a table adapts to queues that are longer than its rounds. The latest 8
// probes without an answer are remembered for this. Racks without choices are forgotten
// after Idle.
//
// # Whom to believe
//
// An answer counts if its token is outstanding, its path is the one asked about and its
// sender is the host that was asked. So a lying host can affect only flowcells to its own
// rack. It can make them prefer or avoid some of the d paths that the Table drew, for one
// round. The next round asks another of the latest 4 hosts with traffic. The host cannot
// name a path, nor revive a dead one, whose probes do not reach it. It cannot slow
// sampling beyond MaxExpiry and a second. By silence it cannot slow its own sampling
// beyond 16 s. It cannot make sampling faster than the budget. Any message costs O(d) and
// no memory.
//
// # Who calls what
//
// The owner calls Choose with a flowcell's first packet, Sent for what is sent, Answer
// for what comes in, and Probes when Next says so. Each of these calls may make Next
// earlier. Nothing blocks, starts a goroutine or reads a clock.
//
// A rack takes some 850 bytes at d = 2, and 128 for each further sample. Each of the
// first 64 paths takes 8 bytes to count choices. After growth it is up to twice that.
//
// # Why probes are UDP
//
// The probe has Luopan's word (path ID, type, 7 bits of queue) in a UDP packet of data's
// own class. The word is behind the IP header, since routers forward by that header. A
// token keeps hosts off the path from answering. The packet also has the number of
// switches that wrote and the answerer's clock. So sampling works, less precisely, over
// switches that only forward.
//
// A host does its rack's part: its tables are per rack, its rounds are its own. In a rack
// of many hosts the paper's switch would sample once for all. Here every host pays
// (Overhead, with the host's link).
package luopan
