package fabric

import (
	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
)

// readCounters returns the counters of the decapsulator of ports, whoever attached
// it, and nil when there is none. The kernel's ipip device has no such counters.
func readCounters(h *netlink.Handle, ports []netlink.Link) (*Counters, error) {
	var c Counters
	ok, err := kernel.DecapFilter.Counters(h, ports, c.sums()...)
	if err != nil || !ok {
		return nil, err
	}
	return &c, nil
}

// readEdgeCounters is readCounters for the edge's program.
func readEdgeCounters(h *netlink.Handle, ports []netlink.Link) (*EdgeCounters, error) {
	var c EdgeCounters
	ok, err := kernel.EdgeFilter.Counters(h, ports, c.sums()...)
	if err != nil || !ok {
		return nil, err
	}
	return &c, nil
}
