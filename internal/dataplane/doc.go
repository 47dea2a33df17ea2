// Package dataplane carries packets between hosts and the fabric. It knows neither
// netstack nor a kernel's TCP, only IP packets and super-segments.
//
// Egress takes packets out: it classifies them, cuts flows into units, chooses a path
// for each unit, wraps packets in outer headers and writes them. Ingress takes packets
// in: it checks them, restores their order, merges them and hands them to a sink. The
// two know of each other only what a connection's other end says: acknowledgements,
// congestion marks, smaller MTUs.
//
// Package stack puts both around netstack (stack.Host). Gateway puts both beside a
// host's kernel, which keeps its TCP: packets of programs come from a TUN, and what
// arrives goes to that TUN in order. package daemon runs one. A tunnel (Tunnel) has
// datagrams in place of outer headers, and peers in place of a topology.
//
// Nothing here allocates for a packet, or blocks but in a device. Locks are taken in
// the order of ingress, then egress.
package dataplane
