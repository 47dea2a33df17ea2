// Package sim simulates a fabric packet by packet, with the same code that
// chooses paths, cuts flows and restores order at real hosts.
//
// # What is modelled
//
// Hosts have one link each, an endless queue in front of it unless HostQueueBytes bounds
// it, and send what TCP lets them at once: data and acknowledgements share that queue.
// Switches store and forward; each port is a first-in-first-out queue in bytes with tail
// drop, and marks by the queue that a packet finds. Packets are as long as TCP and its
// header make them. The header that carries the path (such as an outer IP header of 20
// bytes) is left out, as in the papers. One Delay stands for a link's propagation and all
// that a switch takes.
//
// # How
//
// A port is not a queue of packets but the time until which it is busy, since packets leave
// in order. So a hop is one event: a packet arrives at the end of a link and enters the
// next port, and the time when it will arrive at that link's end is known. Only a port that
// fails must look for its packets. Times are whole picoseconds. Events at the same time
// happen in the order in which they were caused, so a run is determined by its Config.
//
// In a fabric of thousands of hosts a hop costs memory accesses, not arithmetic: see
// lookahead.go. Ended flows are used again, so a run takes memory for what is under way at
// one time.
//
// # Why it is so
//
// There are two simulations, for two questions. internal/simnet runs whole Hosts in virtual
// time, TCP and the packets' bytes included: does weft work? This package runs thousands of
// hosts with packets of 64 bytes of fields and a model of TCP: do the papers' tables come
// out? Both drive the same flowcell, drb, policy, luopan, conga, local and resequencer code.
// What is a switch's in a paper is a model behind spray.Switch.
//
//	workload.Source ─► tcp.Sender ─► spray.Hosts.Data ─► host's port ─► ports of the path ─► resequencer.Buffer ─► tcp.Receiver
//	                       ▲                             (spray.Switch where switches choose)                            │
//	                       └──────────────── the same packet, turned round, by spray.Hosts.Ack ◄─────────────────────────┘
//
// An event is 16 bytes, in a two-level timing wheel of pooled chunks, sorted stably when its
// slot's time comes. Order is total: time, then order of pushing. Without it, ties break a
// flow's interleaving, and DRB's resequencing delay comes out tenfold. Time is in picoseconds,
// so that a byte takes a whole number of them at all usual rates. A route is five port
// numbers in the packet, written at the source by arithmetic on the path's number, or by
// switches hop by hop. A hop touches the packet, its port and the port's class, and calls
// nothing through an interface unless switches choose or measure.
//
// A dead link has no room, and what is on it when it dies does not arrive. Hosts and switches
// learn of it Told later.
package sim
