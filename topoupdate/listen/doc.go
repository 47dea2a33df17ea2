// Package listen keeps a host's view of the fabric: it receives the edge switch's reports
// of links that are down, and delivers a snapshot of the topology whenever that has
// changed.
//
//	updates, err := listen.Open(listen.Config{
//		Interface: "eth0", Topology: t, Address: addr,
//		Deliver: func(t *topology.Topology) { host.SetTopology(t) },
//	})
//
// A host that hears nothing keeps the topology that it was given, so listening does no
// harm where switches run no agents. It needs no privilege. Package topoupdate describes
// the protocol, and what an attacker can make a host believe.
package listen
