// Package listen keeps a host's view of the fabric: it hears what the edge switch
// says of links that are down, and delivers a snapshot of the topology whenever
// that has changed.
//
//	updates, err := listen.Open(listen.Config{
//		Interface: "eth0", Topology: t, Address: addr,
//		Deliver: func(t *topology.Topology) { host.SetTopology(t) },
//	})
//
// A host that hears nothing stays with the topology that it was given, so this is
// of no harm where switches run no agents. It needs no privilege. The protocol,
// and what a host can be made to believe, is package topoupdate's.
package listen
