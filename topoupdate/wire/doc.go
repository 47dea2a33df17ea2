// Package wire carries the messages of package topoupdate over the ports of a Linux
// machine, and watches the ports' carrier.
//
// A message is the payload of one UDP datagram to a link-local multicast group. So it
// needs no address of the neighbour, no route, and no answer to an ARP request, and no
// router forwards it. Ports may be unnumbered. The kernel then takes the source address
// from another device (inet_select_addr in net/ipv4/devinet.c). It prefers scope global,
// so it takes the node's own address on lo and not 127.0.0.1. On a machine without any
// address it is 0.0.0.0, which receivers accept for 224.0.0.0/24 (ip_mc_validate_source
// in net/ipv4/route.c). Nothing relies on this address: a message names its sender in its
// payload.
//
// Messages leave with TTL 255, and a filter in the kernel drops messages that arrive with
// less, so only neighbours can send messages (RFC 5082). The option IP_MINTTL works for
// TCP only. The filter also drops packets that did not come in a multicast frame, for
// example packets that this machine has taken out of a tunnel. The type of service is
// 0xD0. Its upper bits are the class of network control (CS6 and DSCP 52 share them), and
// Linux's queues treat it as "interactive", so that messages overtake queues of data
// (rt_tos2priority, pfifo_fast).
//
// Nothing here queues: messages wait in the kernel, in the bounded receive buffer of
// their own port.
package wire
