// Package daemon is weft host: it puts the dataplane of package stack behind the
// kernel's sockets of a whole machine, so that programs which know nothing of
// weft send over every path.
//
// A run is: read the configuration, drop what privileges are not needed, find
// the uplink, set up rules, routes and settings (hostsetup.Plan), open the
// devices, start the dataplane, and only then lead traffic into it. The end is
// the same backwards, and no step of it loses a connection, since the
// connections are the kernel's. What a crash leaves is known to the next run,
// and to weft host --cleanup.
//
// # Why it is so
//
// One goroutine owns the daemon's state. It takes one event after the other: a signal, news
// of failures, a change of the kernel, time. Each is carried out as a whole or not at all. A
// status shows the state before or after an event.
//
//   - Reload is a list of steps, each with its way back. If going back fails, too, weft gets
//     out of the way: packets go as the kernel's own routes have them, until all can be
//     brought back.
//   - Repair compares what weft owns in the kernel with what it should be: when netlink tells
//     of a change, and 20 times a second for what netlink does not tell. Each repair is a
//     line of the log. An uplink that is gone, a TUN that was deleted and a dataplane that
//     ended are made anew.
//   - Heartbeats: the goroutines that move packets beat for themselves, the owner beats for
//     the program at the uplink. A program whose beat is late leaves packets to the kernel.
//   - Racks to which no carrier is proved get plain packets. The first encapsulation of the
//     list that works anywhere is used.
//
// The owner runs in tests on a kernel that forgets and refuses (TestOwner), and in a lab
// where everything happens to two daemons under transfers (TestChaos).
package daemon
