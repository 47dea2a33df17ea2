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
// Everything in this package is safe for concurrent use. With Config.Clock, a
// Host lives in virtual time instead, where nothing is concurrent and the same
// calls give the same packets.
package stack
