// Package dataplane carries packets between hosts and the fabric. It knows neither
// netstack nor a kernel's TCP, only IP packets and super-segments.
//
// Egress sends packets: it classifies them, cuts flows into units, chooses a path for
// each unit, wraps packets in outer headers and writes them. Ingress receives packets: it
// checks them, restores their order, merges them and passes them to a sink. Ingress tells
// egress only what the other end of a connection says: acknowledgements, congestion
// marks, smaller MTUs.
//
// Package stack puts both around netstack (stack.Host). Gateway puts both beside a host's
// kernel, which keeps its TCP: packets of programs come from a TUN, and packets that
// arrive go to that TUN in order. Package daemon runs a Gateway. A tunnel (Tunnel) has
// datagrams in place of outer headers, and peers in place of a topology.
//
// Nothing here allocates for a packet, or blocks except in a device. The lock of ingress
// is taken before that of egress.
package dataplane
