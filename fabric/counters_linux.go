package fabric

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
)

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

// readCounters returns the counters of the decapsulator of h's network
// namespace, whoever attached it, and nil when there is none. ports are the
// names of the node's ports. The kernel's ipip device has no such counters.
func readCounters(h *netlink.Handle, ports []string) (*Counters, error) {
	links, err := portLinks(h, ports)
	if err != nil {
		return nil, err
	}
	for _, link := range links {
		id, err := decapFilter.program(h, link)
		if err != nil {
			return nil, err
		}
		if id != 0 {
			return programCounters(id)
		}
	}
	return nil, nil
}

func programCounters(id ebpf.ProgramID) (*Counters, error) {
	prog, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return nil, explain(fmt.Errorf("eBPF program %d: %w", id, err))
	}
	defer prog.Close()
	m, err := programMap(prog, decapMapCounters)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	var c Counters
	// The order of the enum in bpf/decap.c.
	if err := sumCounters(m, &c.Decapsulated, &c.Spoofed, &c.Nested, &c.ECN, &c.Malformed); err != nil {
		return nil, err
	}
	return &c, nil
}
