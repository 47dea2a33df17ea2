// Package stack puts weft under Go programs. A Host is a TCP/IP stack of its own (gVisor
// netstack). It cuts its packets into units, gives each unit a path through the fabric,
// encapsulates the packets, and restores their order at the other end.
//
//	host, err := stack.New(stack.Config{
//		Address:  netip.MustParseAddr("10.0.0.130"),
//		Topology: fabric, // topology.Parse("fat-tree:k=4")
//		Device:   tun,    // link.OpenTUN
//	})
//	client := http.Client{Transport: &http.Transport{DialContext: host.DialContext}}
//	l, err := host.Listen("tcp", ":8080")
//
// Connections behave as package net's do: probes of idle connections are on, and errors
// satisfy errors.Is as the kernel's do. Each TCP connection is a TCPConn, with the
// methods of *net.TCPConn. (net/http finds ReadFrom and CloseWrite by itself.)
// Host.Shutdown ends a Host when all written data has arrived.
//
// An outgoing packet passes endpoint (out of netstack), the dataplane's egress (classify,
// cut, choose, wrap) and the device. An incoming packet passes the device, the
// dataplane's ingress (check, restore order), toNetstack (merge) and endpoint (into
// netstack).
//
// Everything in this package is safe for concurrent use. With Config.Simulation a Host
// lives in virtual time instead, where nothing is concurrent and the same calls give the
// same packets.
//
// # Why it is so
//
// Ingress checks lengths and checksums before it resequences: a damaged sequence number
// would spoil the order of later packets. It tells netstack, packet by packet, not to
// check TCP's checksum again. One goroutine reads and one timer expires. Both deliver
// under one lock, so packets that they release cannot change places.
//
// Sockets are this package's, not gVisor's gonet. Errors keep their identity, deadlines
// are os.ErrDeadlineExceeded, and all pending calls end with net.ErrClosed when a socket
// or the Host is closed. An unspecified listening address becomes the Host's only
// address, so that Addr() can be dialled. With Config.Address6 it stands for both, as in
// package net.
//
// A super-segment is a flowcell: one classification, one choice, one number and one
// system call for 64 KB. It stays whole because no userspace wraps it. A virtio header
// cannot say "IP-in-IP", so the number in the packet chooses the path, and the program at
// the uplink encapsulates. Package gso cuts super-segments if a device does not take
// them, or if each packet takes another path. Netstack's super-segments are a multiple of
// the segment size and no longer than a flowcell. Over IPv6 the last segment is shorter:
// netstack does not say for which family it asks how long a super-segment may be. The uplink's
// program knows only IPv4, so the Host encapsulates IPv6 itself.
//
// Ingress is generic in the packets that the resequencer holds: netstack's packet buffers
// for a Host, frames for a Gateway. Large buffers are passed on, and packets up to 16 KB
// are copied. So held packets take at most four times the memory that they count for.
//
// # Why a Gateway reads a packet socket
//
// After decapsulation by tc an skb keeps the mark that it is IP-in-IP. If tc redirected
// it to a TUN, the kernel would cut it into packets, and no flag of the kernel and none
// of its tunnel devices avoids that. A packet socket on the uplink gets it whole. The
// kernel must not get the same packet as well. So a program behind the socket drops
// exactly the packets that the socket's filter takes, while the daemon's heartbeat is
// recent (hostprog.SteerPatience). When a daemon dies, its TUN and the routes into it
// vanish, the program lets everything through, and the kernel continues by itself.
//
// Under a policy of flowcells the uplink's program cuts outgoing TCP and userspace does
// not see it. Userspace would only have written a number, for two copies of 64 KB and two
// wake-ups, which were a third of the whole cost.
//
// Switches send ICMP errors about outer headers, for which the kernel knows no socket.
// Ingress turns such an error into one about the inner packet (encap.InnerError, RFC 2003
// §4), in ICMP or ICMPv6, and subtracts the outer header from the reported MTU. TCP gets only "too big": an unreachable
// bouncing switch says nothing about the destination.
//
// # Why the tunnel is so
//
// If nobody may configure switches, or the process has no privileges, packets travel in
// UDP (encap.UDPHeader). Each path has a source port, which plain ECMP spreads. A
// flowcell is one sendmsg with UDP_SEGMENT, and UDP_GRO returns it as one. Policies of
// packets group a super-segment's segments by path: one call for each path rather than
// for each packet. The outer checksum, or the MAC, covers the inner transport checksum. A
// keyed sender's counter begins with the time of day, so that a replay window still works
// after a restart.
//
// # Which options of netstack differ
//
// Virtual time shows how TCP reacts to data that comes in perfect order but not evenly
// (figures in bench/RESULTS.md).
//
//   - No timestamps. Netstack takes most round trips from them, in whole milliseconds. In a
//     fabric that is 0, and CUBIC's HyStart leaves slow start at once. There is no option
//     for it, so egress takes timestamps out of SYNs that leave and ingress out of those
//     that come in. Their other use is to tell a packet from one 4 GB older, which no
//     fabric needs.
//   - A copy of its TCP with seven patches (third_party/netstack, made by sync.sh, compared by
//     a test). CUBIC took a round trip of 40 µs for 1 ms and settled at two packets; RACK
//     left data without a timer. A replace directive would not reach programs that import
//     weft. RACK stays off: it takes a skew of 2 ms for loss.
//   - Timers one by one (pacedClock). Tens of thousands of FIN timers, each in its own
//     goroutine, starve the goroutines that take acknowledgements.
//   - A least retransmission timeout of twice Hold, 20 ms instead of 200, for tails that
//     wait for it.
package stack
