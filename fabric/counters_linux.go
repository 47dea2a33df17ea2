package fabric

import "github.com/vishvananda/netlink"

// readCounters returns the counters of the decapsulator of ports, whoever attached
// it, and nil when there is none. The kernel's ipip device has no such counters.
func readCounters(h *netlink.Handle, ports []netlink.Link) (*Counters, error) {
	var c Counters
	ok, err := decapFilter.counters(h, ports, c.sums()...)
	if err != nil || !ok {
		return nil, err
	}
	return &c, nil
}

// readEdgeCounters is readCounters for the edge's program.
func readEdgeCounters(h *netlink.Handle, ports []netlink.Link) (*EdgeCounters, error) {
	var c EdgeCounters
	ok, err := edgeFilter.counters(h, ports, c.sums()...)
	if err != nil || !ok {
		return nil, err
	}
	return &c, nil
}

// counters reads what the program has counted that all ports share which have it:
// false if none has. sums are in the order of the program's enum.
func (f tcFilter) counters(h *netlink.Handle, ports []netlink.Link, sums ...*uint64) (ok bool, err error) {
	for _, port := range ports {
		id, err := f.program(h, port)
		if err != nil {
			return false, err
		}
		if id == 0 {
			continue
		}
		m, err := mapOf(id, countersMap)
		if err != nil {
			return false, err
		}
		defer m.Close()
		return true, sumCounters(m, sums...)
	}
	return false, nil
}
