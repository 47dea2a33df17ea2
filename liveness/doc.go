// Package liveness finds dead, lossy and slow paths from the host alone. It asks nothing
// of switches but to forward packets.
//
// A Watcher has three sources:
//
//   - Boomerangs: encapsulated packets to each bouncing switch whose inner
//     destination is the host itself. They test the host's half of the paths.
//   - Requests by each path to destinations with traffic. A peer that runs weft
//     answers by the same path. They test the other half.
//   - Retransmissions, with the path that carried the lost packet. One makes the
//     Watcher probe the path at once. Many of them can convict the path.
//
// The Watcher turns its verdicts into suspected links. Watcher.Topology is the baseline,
// which link-state updates may change, without the suspected links.
//
// # Which evidence counts for whom
//
// Boomerangs are the host's own evidence: nobody else answers them. All evidence about
// the other half of a path comes from a destination, which answers requests or not and
// acknowledges data or not. So the evidence of one destination takes only its own paths
// out of use (topology.Avoided). A link of the other half is suspected, and avoided for
// all destinations, under two conditions. Destinations in two racks accuse it, or two
// hosts of the rack whose own link it is. And no destination contradicts: none that has
// traffic, answers requests and has missed none over that link. If a link loses only
// packets as long as data, the answers to short requests contradict; then the losses of
// each destination convict for that destination. An attacker who owns hosts in two racks
// of a pod can make a host avoid links to the pod, but only while no other active
// destination behind these links answers.
//
// # Congestion is not death
//
// A path that misses one probe is probed every few milliseconds, each time together with
// another path to the same place. A miss counts only if the other probe came home. So
// trouble that all paths share convicts none of them: congestion of the host's own link,
// a dead peer, or a process that was not scheduled. A path is dead after a row of misses
// that would occur once in 10^9 tries at the loss rate of the other paths, and not before
// it has been silent for longer than a queue takes to drain. A path is lossy if its share
// of losses exceeds the median of the others by a Chernoff bound of 10^-9.
//
// Boomerangs tell which half is at fault. While the boomerang to a path's bouncing switch
// is in doubt, requests by that path decide nothing.
//
// A path returns after a row of good probes, and not before its hold-down has passed. The
// hold-down doubles with each offence. Where nobody answers probes, the path returns on
// trial. At least Config.Floor of the paths to a destination with traffic stays in use.
// All times are jittered, so that hosts do not act in step.
//
// # Slow paths
//
// A link at a tenth of its rate answers every probe. The queue before it shows the fault:
// for a whole second, probes of data's class wait in it, and those by half of the other
// paths do not wait. A delay that all paths share convicts none. A slow path is out of
// use for a hold that doubles, except for the floor, and then on trial. Slow boomerangs
// convict links. Slow answers of a destination convict only its own paths.
//
// # Mute destinations
//
// A destination that answers none of many probes is mute. That says nothing about its
// paths. A destination that has never answered counts as a plain host without weft. It is
// tried by one path after 1 s, then 2 s, and so on up to 16 s, each time jittered by a
// quarter. So it may take that long to notice that weft has been started there. If the
// destination has answered before, its paths or the host may have died: four paths are
// tried every second, and after 60 such tries it counts as a plain host. A try does not
// count while boomerangs do not come home either. The first answer, or a probe of the
// destination's own (Heard), ends the mute state.
//
// # Bounds
//
// Config.Budget bounds the probes. A ring whose size follows from the budget bounds the
// awaited answers. Config.MaxDestinations bounds the destinations, at about 450 bytes for
// each path of each. Stats counts what exceeds the bounds.
//
// The package is pure: it takes the time as an argument and owns no goroutine, timer,
// socket or lock. Times are since an arbitrary start, and never go back. A Watcher is not
// safe for concurrent use.
//
// Sources: boomerangs and the host's own view, DRB §4.2 and §4.3; detection by missed
// probes, BFD (RFC 5880 §6.8.4); losses as path failure, MRC.
//
// # Why it is so
//
// Verdicts become suspected links because the paths of other destinations share links.
// Evidence of losses is a direct-mapped table for each Host: 8 ns a segment.
//
// Probes have a class of their own in queues: TOS 0xD0 is network control by its top
// three bits and "low delay" to Linux. Where switches have one queue only, a long queue
// delays the verdict. Some probes are of data's class (encap.Probe.AsData) and wait where
// data waits. A path is slow if for a second even the fastest of these took over 5 ms,
// and 4 times as long as by half of the other paths with traffic. It is out of use,
// except for the floor, for 2 s, doubled up to 60 s.
//
// A kernel sends one peer at most one ICMP error a second, so plain hosts cannot answer
// faster. They are asked ever more rarely.
//
// # Proof
//
// A carrier is used towards a rack only while it is proved. Probes that come home prove a
// bouncing switch. A rack goes plain within half a second when no probe comes home, or
// when none of its peers answers though boomerangs come home. The carrier is used again
// after a hold that doubles. No floor keeps an unproved switch in use. Every 400 ms a
// probe of each path with traffic is as long as data may be. A rack's MTU is the least
// MTU of the paths in use; if only a few paths have a small MTU, or lose all that is as
// long as data, they are left out instead. Time while the process was stopped does not count as silence. Carriage says
// all this to egress, to the program at the uplink and to the routes.
//
// # What is in flight
//
// TCP repairs what was lost on a dead path. When SetTopology returns, no packet takes a
// dead path, not even the rest of a unit under way. A segment that is sent again after a
// timeout begins a new unit; otherwise it would take the dead path as well. The
// resequencer waits for all gaps of one failure at the same time, not for one after the
// other.
package liveness
