// Package stack puts weft under Go programs: a Host is a TCP/IP stack of its
// own (gVisor netstack) whose packets are cut into units, given a path through
// the fabric each, encapsulated, and put back in order at the other end.
//
//	host, err := stack.New(stack.Config{
//		Address:  netip.MustParseAddr("10.0.0.130"),
//		Topology: fabric, // topology.Parse("fat-tree:k=4")
//		Device:   tun,    // link.OpenTUN
//	})
//	client := http.Client{Transport: &http.Transport{DialContext: host.DialContext}}
//	l, err := host.Listen("tcp", ":8080")
//
// Connections behave as package net's do: probes of idle ones are on, errors
// satisfy errors.Is as the kernel's do, and each is a TCPConn, with the methods of
// *net.TCPConn. (net/http finds ReadFrom and CloseWrite by itself.)
// Host.Shutdown ends a Host when all that was written has arrived.
//
// A packet that leaves passes endpoint (out of netstack), the dataplane's egress
// (classify, cut, choose, wrap) and the device. A packet that arrives passes the device,
// the dataplane's ingress (check, restore order), toNetstack (merge) and endpoint (into
// netstack).
//
// Everything in this package is safe for concurrent use. In a Config.Simulation, a
// Host lives in virtual time instead, where nothing is concurrent and the same
// calls give the same packets.
//
// # Why it is so
//
// Ingress checks lengths and checksums before it resequences: a sequence number that is
// noise would spoil the order of what follows. Netstack is told, packet by packet, not to
// check TCP's checksum again. One goroutine reads and one timer expires. Both deliver under
// one lock, so that what they release cannot change places.
//
// Sockets are this package's, not gVisor's gonet. Errors keep their identity, deadlines are
// os.ErrDeadlineExceeded, and everything pending ends with net.ErrClosed when a socket or the
// Host is closed. An unspecified listening address becomes the Host's only address, so
// that Addr() can be dialled.
//
// A super-segment is a flowcell: one classification, one choice, one number and one system
// call for 64 KB. It stays whole because no userspace wraps it. A virtio header cannot say
// "IP-in-IP", so the number in the packet chooses the path, and the program at the uplink
// encapsulates. Package gso cuts super-segments where a device does not take them, or where
// each packet takes another path. Netstack's super-segments are a multiple of the segment
// size and no longer than a flowcell.
//
// Ingress is generic in what the resequencer holds: netstack's packet buffers for a Host,
// frames for a Gateway. Large buffers change hands, and up to 16 KB is copied. So what is
// held takes at most four times what it counts for.
//
// # Why a Gateway reads a packet socket
//
// After decapsulation by tc an skb keeps the mark that it is IP-in-IP. A TUN to which tc
// redirected it would get it cut into packets, and no flag of the kernel and none of its
// tunnel devices avoids that. A packet socket on the uplink gets it whole. The kernel must
// not see the same packet as well, so a program behind the socket drops exactly what the
// socket's filter takes, while the daemon's heartbeat is no older than a second. When a
// daemon dies, its TUN and the routes into it vanish, the program lets everything through,
// and the kernel goes on by itself.
//
// Under a policy of flowcells the uplink's program cuts outgoing TCP and userspace does not
// see it. Userspace would only have written a number, for two copies of 64 KB and two
// wake-ups, which were a third of the whole cost.
//
// Switches send ICMP errors about outer headers, which the kernel can relate to no socket.
// Ingress turns such an error into one about the inner packet (encap.InnerError, RFC 2003
// §4) and takes 20 from the reported MTU. TCP gets only "too big": that a bouncing switch is
// unreachable says nothing about the destination.
//
// # Why the tunnel is so
//
// Where nobody may configure switches, or the process has no privileges, packets travel in
// UDP (encap.UDPHeader). Each path has a source port, which plain ECMP spreads. A flowcell
// is one sendmsg with UDP_SEGMENT, and UDP_GRO returns it as one. Policies of packets group
// a super-segment's segments by path: one call for each path rather than for each packet. The
// outer checksum, or the MAC, covers the inner transport checksum. A keyed sender's counter
// begins with the time of day, so that a replay window outlives restarts.
//
// # What netstack is told otherwise
//
// Virtual time shows what TCP makes of data that comes in perfect order but not evenly
// (figures in bench/RESULTS.md).
//
//   - No timestamps. Netstack takes most round trips from them, in whole milliseconds. In a
//     fabric that is 0, and CUBIC's HyStart leaves slow start at once. There is no option
//     for it, so egress takes timestamps out of SYNs that leave and ingress out of those
//     that come in. Their other use is to tell a packet from one 4 GB older, which no
//     fabric needs.
//   - A copy of its TCP with four patches (third_party/netstack, made by sync.sh, compared by
//     a test). CUBIC took a round trip of 40 µs for 1 ms and settled at two packets; RACK
//     left data without a timer. A replace directive would not reach programs that import
//     weft. RACK stays off: it takes a skew of 2 ms for loss.
//   - Timers one by one (pacedClock). Tens of thousands of FIN timers, each in its own
//     goroutine, starve those that take in acknowledgements.
//   - A least retransmission timeout of twice Hold, 20 ms instead of 200, for tails that
//     wait for it.
package stack
