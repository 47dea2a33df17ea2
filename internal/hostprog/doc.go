// Package hostprog holds the eBPF programs of a host and their loaders:
//
//   - Spray, at the uplink's egress, encapsulates by a policy what the kernel's own
//     TCP and programs send.
//   - Steer, at the uplink's ingress, keeps weft's packets from the kernel's own
//     protocols while somebody reads them.
//   - Detour, at the TUN device, sends packets past a process that hangs.
//   - Pacer gives connections of the kernel's TCP a highest rate, by an iterator over its
//     sockets.
//
// It knows a host's topology, its policy and the device that it attaches to. It does not
// know the host's addresses, routes and rules (internal/hostsetup), nor switches
// (fabric).
//
// # Why it is so
//
// The spray program sends a packet by order[(hash of the five-tuple + (IPv4 ID >> shift))
// mod n] and encapsulates super-segments whole. With shift 0 it sprays the packets of a
// kernel's TCP, which counts them in the ID. With shift 6 it sprays flowcells. It can cut
// flowcells itself, by flowcell.Cutter's rule in a bounded table.
//
// Racks are an LPM trie of numbers of path groups. A group is never changed but replaced.
// So the cost of a change of topology grows with what it changes, and a packet sees a
// rack's old paths or its new ones. With SRv6 a destination is a path's head and a rack's
// tail. Racks with the same heads share their groups, so a change costs no more than with
// IP-in-IP. Next hops are link-local addresses made of the nodes' IPv4 addresses
// (LinkLocal6).
//
// Datagrams that are not listed (SprayConfig.Datagrams), ICMP and fragments keep to one path
// for each pair of hosts. Listed ones are numbered in the inner IPv4 ID, since it alone
// survives the bounce and a datagram with DF does not need it. The number has the track, so
// that a receiver tells loss from delay without waiting. The outer ID is
// the inner one. So the packets that a kernel cuts later equal those that encap would
// have made; a differential test compares the bytes. A packet that cannot be encapsulated
// leaves unchanged, counted by cause.
//
// Under luopan and rand the program draws a path when a flowcell begins and keeps it with
// the flow. A table holds, for each rack, a path and the time until which it is valid. A
// Host (stack.PathDevice) or the daemon's sampler fills it, and learns from the program
// which racks are in use. Policies that decide packet by packet (conga, letflow, local,
// drill, reps) stay in userspace.
//
// The settings that the programs changed at the uplink (gso_max_segs, gso_ipv4_max_size)
// are in a map bound to the program. Repair compares program, place and settings with
// what should be, and restores them.
package hostprog
