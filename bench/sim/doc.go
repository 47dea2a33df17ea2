// Package sim simulates a fabric packet by packet, with the same code that chooses paths,
// cuts flows and restores order at real hosts.
//
// # What is modelled
//
// A host has a link, in a Graph one or more, with an unbounded queue before it unless HostQueueBytes bounds it.
// It sends at once what TCP allows: data and acknowledgements share that queue. Switches
// store and forward; each port is a first-in-first-out queue in bytes with tail drop, and
// marks a packet by the length of the queue that it finds. Packets are as long as TCP and
// its header make them. The header that carries the path (such as an outer IP header of
// 20 bytes) is left out, as in the papers. One Delay stands for a link's propagation and
// the delay in a switch.
//
// A connection of MPTCP is several flows, which share a tcp.Group.
//
// # How
//
// A port is not a queue of packets but the time until which it is busy, since packets
// leave in order. So a hop is one event: a packet arrives at the end of a link and enters
// the next port, and the time when it will arrive at that link's end is known. Only a
// port that fails must look for its packets. Times are whole picoseconds. Events at the
// same time happen in the order in which they were caused, so a run is determined by its
// Config.
//
// In a fabric of thousands of hosts a hop costs memory accesses, not arithmetic: see
// lookahead.go. Ended flows are reused, so a run's memory grows only with the flows that
// run at the same time.
//
// # Why it is so
//
// There are two simulations, for two questions. internal/simnet runs whole Hosts in
// virtual time, including TCP and the packets' bytes: does weft work? This package runs
// thousands of hosts with packets of 64 bytes of fields and a model of TCP: can the
// papers' results be repeated? Both drive the same flowcell, drb, policy, luopan, conga,
// local and resequencer code. What a paper puts into a switch is a model behind
// spray.Switch.
//
//	workload.Source ─► tcp.Sender ─► spray.Hosts.Data ─► host's port ─► ports of the path ─► resequencer.Buffer ─► tcp.Receiver
//	                       ▲                             (spray.Switch where switches choose)                            │
//	                       └──────────────── the same packet, turned round, by spray.Hosts.Ack ◄─────────────────────────┘
//
// An event is 32 bytes, in a two-level timing wheel of pooled chunks, sorted stably when
// its slot's time comes. It has the ports that a packet has yet to enter, its length and its
// flags. The order is total: by time, then by the order of pushing.
// Without it, ties change a flow's interleaving, and DRB's resequencing delay becomes ten
// times as long. Time is in picoseconds, so a byte takes a whole number of them at all
// usual rates. A route is five port numbers in the packet, written at the source by
// arithmetic on the path's number, or by switches hop by hop. A hop touches the event, its
// port and the port's class, and neither the packet nor an interface unless switches choose or
// measure.
//
// In a fabric that is data (Config.Graph) a packet carries its path's bouncing switch, and
// each switch finds its port by a table. Where several lead on, it hashes the flow's
// five-tuple. A host with several uplinks sends by that of the path's edge switch; hosts
// that have an edge switch in common send by that.
//
// Besides tail drop and marks beyond a length, a port may have a discipline of package aqm
// (Queue.Manage), which decides by a virtual queue of its own: virtual queues that drain
// slower than the link, RED, QCN.
//
// A dead link has no room, and the packets on it when it dies do not arrive. Hosts and
// switches learn of it Told later.
package sim
