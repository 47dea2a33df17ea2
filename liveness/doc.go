// Package liveness is what a host finds out alone about dead and lossy paths,
// with no help from switches but their forwarding.
//
// A Watcher has three sources:
//
//   - Boomerangs, encapsulated packets to each bouncing switch whose inner
//     destination is the host itself: they tell of the host's own side of the
//     paths.
//   - Requests through each path to destinations with traffic, which a peer that
//     runs weft echoes through the same path: they tell of the other side.
//   - Retransmissions, by the path that carried the lost packet: they tell that a
//     path is worth a probe at once and, where they leave no doubt, that it is
//     bad.
//
// What they say of paths is expressed as suspected links: Topology is the
// baseline, which link-state updates may change, without them.
//
// # Whose word counts
//
// Boomerangs are the host's own word: nobody else answers them. All that is known of a
// path's other half a destination has said, by answering requests or not, and by
// acknowledging data or not. So what one destination says has its own paths avoided and
// no others (topology.Avoided). A link of the other half is suspected, and so avoided
// to all, when destinations in two racks speak against it, or two hosts of the rack
// whose own link it is, and none contradicts: a destination with traffic that answers
// requests and has missed none over that link. If a link loses only what is as long as
// data, those that answer do contradict: then each destination's losses convict for
// itself. Who owns hosts in two racks of a pod can have links to it avoided only
// while no other active destination behind them answers.
//
// # Congestion is not death
//
// A path that misses one probe is probed every few milliseconds, each time
// together with another path to the same place. Only a miss beside which the
// other probe came home counts. So what all paths suffer from, be it
// congestion of the host's own link, a peer that has died or a process that was
// not scheduled, convicts nobody. A path is dead after so many of these in a row
// as would happen once in 10^9 tries at the loss that the other paths have, and
// not before its silence is longer than a queue takes to drain. A path is lossy if
// its share of losses stands out against the median of the others by a Chernoff
// bound of 10^-9.
//
// Boomerangs settle whose fault it is: as long as that of a path's bouncing switch
// is in doubt, nothing is concluded from requests by that path.
//
// What is taken away returns after a row of good probes and no sooner than its
// hold-down has passed, which doubles for those that offend again. Where nobody
// answers probes, it returns on trial. Never is more than a part of the paths to
// a destination with traffic taken away (Config.Floor). All times are jittered,
// lest hosts move in step.
//
// # Slow paths
//
// A link at a tenth of its rate answers every probe. What tells of it is the queue
// before it: probes of data's class wait in it for a whole second, while those by half
// of the other paths do not. What all paths suffer from convicts nobody here either.
// What is slow is used less: not at all for a hold that doubles, but for the floor, then
// on trial. Boomerangs convict links; what a destination's answers tell, its own paths.
//
// # Who answers nothing
//
// A destination that answers none of many probes is mute, which says nothing of its
// paths. If it never answered it is taken for a plain host, without weft, whose
// kernel has something better to do than to say that nobody is at this port. It is
// tried by one path after a second, then two, and so on up to 16 s, give or take a
// quarter: so long it may take to notice that it has begun to run weft, by a path
// that works. If it has answered before, its paths or the host may have died: four
// paths are tried every second, and only after a minute of these is it taken for
// plain. What is tried while not even boomerangs come home does not count. The first
// answer, or a probe of its own (Heard), ends all that.
//
// # Bounds
//
// Probes are bounded by Config.Budget, answers awaited by a ring that the budget
// sizes, destinations by Config.MaxDestinations (about 450 bytes per path of
// each). What is beyond them is counted in Stats.
//
// The package is pure: it takes the time as an argument and owns no goroutine,
// timer, socket or lock. Times are since an arbitrary start, and never go back.
// A Watcher is not safe for concurrent use.
//
// Sources: the idea of boomerangs, and the host's own view, DRB §4.2 and §4.3;
// detection by misses of an interval, BFD (RFC 5880 §6.8.4); losses as path
// failure, MRC.
//
// # Why it is so
//
// Verdicts are translated to suspected links, because links are what the paths of others
// share. Evidence of losses is a direct-mapped table for each Host: 8 ns a segment.
//
// Probes have a class of their own in queues: TOS 0xD0 is network control by its top three
// bits and "low delay" to Linux. Where switches have one queue only, a long one delays the
// verdict. Some probes are of data's class (encap.Probe.AsData) and wait where data waits.
// A path is slow if for a second even the fastest of them took over 5 ms and 4 times as long
// as by half of the other paths with traffic. It is out of use, but for the floor, for 2 s,
// doubled up to 60 s.
//
// A kernel sends one peer no more than one ICMP error a second, so plain hosts cannot answer
// faster. They are asked ever more rarely.
//
// # Proof
//
// A carrier is used towards a rack only while it is proved. Probes that come home prove a
// bouncing switch. A rack goes plain within half a second when no probe comes home, or when
// none of its peers answers though boomerangs come home. It is taken up again after a hold
// that doubles. No floor keeps an unproved switch in use. Every 400 ms a probe of each path
// with traffic is as long as data may be. A rack's MTU is the least of the paths in use, and
// a few paths with a small MTU are left out instead. Silence while the process was stopped
// does not count. Carriage says all this to egress, to the program at the uplink and to the
// routes.
//
// # What is in flight
//
// What fell into the hole is TCP's to repair. The hole is closed at once: when SetTopology
// returns, no packet takes a dead path, units under way included. A segment that is sent
// again after a timeout begins a new unit, or it would follow the first into the hole. The
// resequencer does not wait for the holes one after the other.
package liveness
