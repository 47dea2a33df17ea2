// Package weft is the root of an endpoint stack for Clos fabrics: it puts
// every path of a fat-tree under every connection, from the host, on switches
// that only forward. The parts are packages of their own; start with
// [weft/stack] to embed it and with cmd/weft to run it.
//
// A packet going out (packages stack, flowcell, policy, drb, encap, link):
//
//	application ── net.Conn ── netstack TCP
//	                               │ inner IP packet
//	       endpoint.WritePackets   ▼
//	                  ┌─ classify ── flowcell.Packet: five-tuple, data or ACK
//	           egress ├─ cut ─────── flowcell.Cutter of the flow: does a unit begin?
//	                  ├─ choose ──── drb.Selector of the pair: 3.0, 3.2, 3.1, ...;
//	                  │              or luopan, conga, local: the emptier path
//	                  └─ wrap ────── encap.Outer: to the bouncing switch, or a label per hop
//	                               │ outer IP packet
//	       device.Write            ▼
//	  host kernel ─ edge ─ aggregation ─ core 3.r: takes the outer header off
//
// and coming in, as a plain packet, whichever way it went:
//
//	  core 3.r ─ aggregation ─ edge ─ host kernel
//	                               │ inner IP packet
//	       device.Read             ▼
//	                  ┌─ check ───── flowcell.Packet, checksums, destination
//	          ingress ├─ reorder ─── resequencer.Push: hold what is ahead of a hole
//	                  └─ merge ───── gro.Train: up to 64 KB as one segment
//	                               │
//	       DeliverNetworkPacket    ▼
//	application ── net.Conn ── netstack TCP
//
// Where the device takes super-segments ([weft/uplink]), one of up to 64 KB goes
// the same way as one packet; it is not wrapped but numbered, and a program at
// the host's uplink ([weft/internal/hostprog]) chooses the path by the number. The kernel's
// own TCP goes there by itself, and what arrives for it takes the way of ingress
// to the kernel instead of netstack (package internal/dataplane, weft host). Over
// networks that nobody may configure both travel in UDP ([weft/stack.Tunnel]).
//
// What has failed is told by a topology with links down, whoever found out: the
// switches' agents (packages topoupdate, topoupdate/listen; weft switch), or the host
// by probes and losses (package liveness).
//
// Nothing at the receiver is needed to deliver a packet, so a weft host talks
// to plain hosts, and they to it.
//
// # What does not fit yet
//
//   - IPv6 inside IP-in-IP or labels. Hosts have no IPv6 address of their own in topology
//     (Addr6 is an outer one). The tunnel carries IPv6.
//   - Congestion in a tunnel: its header has 32 bits for feedback.
//   - ICMPv6 errors about labels' outer headers. The MTU is by configuration.
//   - The hosts of a rack that sample together.
//   - A scheduler of elephants (Hedera). It will be a rule beside the others, fed from
//     outside like luopan's choices.
package weft
