package fabric

import (
	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
)

// ReadDecap returns how ports decapsulate IP-in-IP, DecapIPIP or DecapEBPF, whoever has set
// it up, and "" if they do not. Only a program has counters; otherwise they are nil. h is
// of the calling thread's network namespace.
func ReadDecap(h *netlink.Handle, ports []netlink.Link) (how string, c *Counters, err error) {
	c = new(Counters)
	ok, err := kernel.DecapFilter.Counters(h, ports, c.sums()...)
	if err != nil {
		return "", nil, err
	}
	if ok {
		return DecapEBPF, c, nil
	}
	if _, err := h.LinkByName(decapDevice(0)); err == nil {
		how = DecapIPIP
	}
	return how, nil, nil
}

// ReadEdgeCounters returns the counters of the program at the ports of an edge switch, nil
// if there is none. h is of the calling thread's network namespace.
func ReadEdgeCounters(h *netlink.Handle, ports []netlink.Link) (*EdgeCounters, error) {
	var c EdgeCounters
	ok, err := kernel.EdgeFilter.Counters(h, ports, c.sums()...)
	if err != nil || !ok {
		return nil, err
	}
	return &c, nil
}
