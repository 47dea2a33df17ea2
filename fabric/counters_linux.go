package fabric

import "github.com/vishvananda/netlink"

// Counters are a bouncing switch's packets by what became of them, since the
// decapsulator was attached. A super-segment counts as its segments where it
// was decapsulated, as one where it was dropped.
type Counters struct {
	Decapsulated uint64 `json:"decapsulated"`
	Spoofed      uint64 `json:"spoofed"`   // dropped: inner source is not the outer one
	Nested       uint64 `json:"nested"`    // dropped: IP-in-IP in IP-in-IP
	ECN          uint64 `json:"ecn"`       // dropped: congestion marked, inner not capable (RFC 6040)
	Malformed    uint64 `json:"malformed"` // dropped: options, fragment, truncated, bad checksum, not IPv4
}

// EdgeCounters are packets whose labels begin or end at a switch by what became of
// them in its program, since that was attached. A super-segment counts as its
// segments where it is let through, as one where it is dropped.
type EdgeCounters struct {
	Decapsulated uint64 `json:"decapsulated"` // left to the kernel for that
	Forged       uint64 `json:"forged"`       // dropped: not the host's own, or the inner source is not the outer one
	Nested       uint64 `json:"nested"`       // dropped: IP-in-IP inside
	ECN          uint64 `json:"ecn"`          // dropped: congestion marked, inner not capable (RFC 6040)
	Malformed    uint64 `json:"malformed"`    // dropped: no whole IPv4 header inside
}

// readCounters returns the counters of the decapsulator of ports, whoever attached
// it, and nil when there is none. The kernel's ipip device has no such counters.
func readCounters(h *netlink.Handle, ports []netlink.Link) (*Counters, error) {
	var c Counters
	// The order of the enum in bpf/decap.c.
	ok, err := decapFilter.counters(h, ports, &c.Decapsulated, &c.Spoofed, &c.Nested, &c.ECN, &c.Malformed)
	if err != nil || !ok {
		return nil, err
	}
	return &c, nil
}

// readEdgeCounters is readCounters for the edge's program.
func readEdgeCounters(h *netlink.Handle, ports []netlink.Link) (*EdgeCounters, error) {
	var c EdgeCounters
	// The order of the enum in bpf/edge.c.
	ok, err := edgeFilter.counters(h, ports, &c.Decapsulated, &c.Forged, &c.Nested, &c.ECN, &c.Malformed)
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
		m, err := mapOf(id, "counters") // bpf/count.h
		if err != nil {
			return false, err
		}
		defer m.Close()
		return true, sumCounters(m, sums...)
	}
	return false, nil
}
