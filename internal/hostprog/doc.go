// Package hostprog holds the eBPF programs of a host and what loads them: the one at the
// uplink's egress that encapsulates what the kernel's own TCP and programs send, by a
// policy (Spray); the one at its ingress that keeps what is for weft from the kernel's
// own protocols while somebody reads it (Steer); and the one at the TUN device that sends
// packets past a process that hangs (Detour).
//
// It knows a host's topology, its policy and the device that it attaches to. It does not
// know the host's addresses, routes and rules (internal/hostsetup), nor switches (fabric).
//
// # Why it is so
//
// The spray program sends a packet by order[(hash of the five-tuple + (IPv4 ID >> shift))
// mod n] and encapsulates super-segments whole. With shift 0 it sprays the packets of a
// kernel's TCP, which counts them in the ID; with shift 6 it goes by the flowcell. It can cut
// flowcells itself, by flowcell.Cutter's rule in a bounded table.
//
// Racks are an LPM trie of numbers of path groups. A group is never changed but replaced. So
// a change of topology costs what it changes, and a packet sees a rack's old paths or its
// new ones. In SRv6 a destination is a path's head and a rack's tail. Racks with the same
// heads share their groups, so a change costs no more than with IP-in-IP. Next hops are
// link-local addresses made of the nodes' IPv4 addresses (LinkLocal6).
//
// Datagrams, ICMP and fragments keep to one path for each pair of hosts. The outer ID is the
// inner one, so that what a kernel cuts later equals what encap would have made: a
// differential test compares bytes. A packet that cannot be encapsulated leaves as it is,
// counted by cause.
//
// Under luopan and rand the program draws a path when a flowcell begins and keeps it with
// the flow. A table rack → path, valid until, is fed by a Host (stack.PathDevice) or by the
// daemon's sampler, which learns from the program which racks are in use. Policies that
// decide packet by packet (conga, letflow, local, drill, reps) stay in userspace.
//
// What the programs changed at the uplink (gso_max_segs, gso_ipv4_max_size) is in a map bound
// to the program. Repair compares program, place and settings with what should be, and mends
// them.
package hostprog
