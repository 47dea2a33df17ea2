// Package wire carries the messages of package topoupdate over the ports of a
// Linux machine, and watches the ports' carrier.
//
// A message is the payload of one UDP datagram to a link-local multicast group,
// so that it needs no address of the neighbour's, no route, and no answer to an
// ARP request, and no router ever forwards it. Ports may be unnumbered. The
// source address is then one of another device, which is how the kernel chooses
// it (inet_select_addr in net/ipv4/devinet.c): of scope global before any other,
// so the node's own on lo and not 127.0.0.1; on a machine without any it is
// 0.0.0.0, which receivers accept for 224.0.0.0/24 (ip_mc_validate_source in
// net/ipv4/route.c). Nothing relies on it: a message says in its payload whose it
// is.
//
// Messages leave with TTL 255, and a filter in the kernel drops what arrives with
// less, so nobody further than a cable away can send us anything (RFC 5082).
// IP_MINTTL would be the option for that, but it is TCP's alone. The filter also
// drops what did not come in a multicast frame, such as what this machine has taken
// out of a tunnel. The type of
// service is 0xD0: its upper bits are the class of network control (CS6 and DSCP
// 52 share them), and Linux's queues take it for "interactive", so that messages
// pass queues full of data (rt_tos2priority, pfifo_fast).
//
// Nothing here queues: what is not taken yet waits in the kernel, in the bounded
// receive buffer of its own port.
package wire
