// Package daemon is weft host: it puts the dataplane (internal/dataplane) behind the
// kernel's sockets of a whole machine. So programs that know nothing of weft send over
// every path.
//
// A run takes these steps: read the configuration, drop privileges that are not needed,
// find the uplink, set up rules, routes and settings (hostsetup.Plan), open the devices,
// start the dataplane, and only then lead traffic into it. The end takes them backwards. No
// step loses a connection, because the connections are the kernel's. The next run and weft
// host --cleanup know what a crash leaves.
//
// # Why it is so
//
// One goroutine owns the daemon's state. It takes one event at a time: a signal, news of
// failures, a change of the kernel, time. It carries out each as a whole or not at all. A
// status shows the state before or after an event.
//
//   - Reload is a list of steps, each with its way back. If going back fails, too, weft gets
//     out of the way: packets follow the kernel's own routes until all can be brought back.
//   - Repair compares what weft owns in the kernel with what it should be: when netlink tells
//     of a change, and 5 times a second for what netlink does not tell. Each repair is a
//     line of the log. The daemon makes anew an uplink that is gone, a TUN that was deleted
//     and a dataplane that ended.
//   - Heartbeats: the goroutines that move packets beat for themselves, the owner beats for
//     the program at the uplink. A program whose beat is late leaves packets to the kernel.
//     During an event it waits for longer (hostprog.Spray.Lease).
//   - Racks to which no carrier is proved get plain packets. The daemon uses the first
//     encapsulation of the list that works anywhere.
//
// The owner runs in tests on a kernel that forgets and refuses (TestOwner), and in a lab
// where everything happens to two daemons under transfers (TestChaos).
package daemon
