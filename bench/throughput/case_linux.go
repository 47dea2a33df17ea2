package throughput

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"weft/bench/testbed"
	"weft/topology"
)

// Case is one way to carry a TCP connection from one host to another.
type Case struct {
	Name  string
	About string // in words
	TCP   string // whose it is: the kernel's or netstack's
	way
}

// congestionControl is what every case uses; netstack's is fixed by its Host.
const congestionControl = "cubic"

// reference is the case that others are compared with.
const reference = "kernel"

// Cases returns all cases.
func Cases() []Case {
	return []Case{
		{"kernel", "the kernel's TCP at both ends, on the one path that ECMP gives it", "kernel", kernelTCP},
		{"kernel-big", fmt.Sprintf("the same with super-segments of up to %d KB (BIG TCP)", bigBytes>>10), "kernel", kernelBig},
		{"kernel-mptcp", "the kernel's MPTCP, 8 subflows over ECMP", "kernel", kernelMPTCP},
		{"netstack", "netstack with super-segments, without weft; one path", "netstack", bareNetstack},
		{"embedded/presto", "weft embedded, over the same devices, flowcells sprayed", "netstack", embedded("presto")},
		{"embedded/drb", "the same, every packet by digit reversal", "netstack", embedded("drb")},
		{"skeleton/presto", "weft embedded, over a TUN that takes a packet a call", "netstack", skeleton("presto")},
		{"udp/presto", "weft embedded, over UDP sockets, without privileges", "netstack", tunnelled("presto")},
		{"udp/drb", "the same, every packet by digit reversal", "netstack", tunnelled("drb")},
		{"host/auto", "the kernel's TCP with weft host at both ends, by its defaults", "kernel", daemonized()},
		{"gateway/presto", "the kernel's TCP through weft host at both ends", "kernel", daemonized("mode: gateway", "policy: presto")},
		{"offload/presto", "the kernel's TCP, flowcells sprayed by weft host's program at the uplink, not put in order", "kernel",
			daemonized("mode: offload", "policy: presto", "resequence: false", "receivers_resequence: true")},
		{"offload/presto-resequenced", "the same, put in order at both ends", "kernel",
			daemonized("mode: offload", "policy: presto", "resequence: true", "receivers_resequence: true")},
		{"offload/presto-big", fmt.Sprintf("the same with super-segments of up to %d KB, each a flowcell", bigBytes>>10), "kernel",
			big(daemonized("mode: offload", "policy: presto", "resequence: true", "receivers_resequence: true", fmt.Sprintf("super_segment_bytes: %d", bigBytes)))},
		{"offload/drb", "the kernel's TCP, every packet by digit reversal at the uplink, not put in order", "kernel",
			daemonized("mode: offload", "policy: drb")},
		{"wireguard-go", "the kernel's TCP through wireguard-go's tun and conn packages, without its cryptography; one path", "kernel", wireguard},
	}
}

// way is how a case does it. supports says what is missing on this machine; nil
// needs nothing.
type way struct {
	supports func(*bench) error
	// prepare changes the lab before the first round; nil changes nothing.
	prepare func(*bench) error
	// helper starts what carries the case's packets at a host beside the
	// Worker, before that; nil for cases without.
	helper func(context.Context, *bench, Case, site) (*process, error)
	// carry is what a Worker does that is such a helper. The host has no sockets.
	carry func(site) (*host, error)
	// open brings up a host's sockets, in the Worker.
	open func(site) (*host, error)
}

// site is a place in the fabric.
type site struct {
	topology   *topology.Topology
	self, peer topology.NodeID
	scratch    string // directory for files; Run removes it
}

// host is what sends or receives. retransmits counts what its TCP sent again.
type host struct {
	testbed.Endpoint
	address     netip.Addr
	retransmits func() (uint64, error)
	// plain says whether packets to the peer's rack go without the carrier, and how
	// often it was given up. nil: they never do.
	plain func() (now bool, givenUp uint64, err error)
	close func() error
}

// Select returns the cases with the given names, in the order of Cases, and
// all of them for no names.
func Select(names []string) ([]Case, error) {
	all := Cases()
	if len(names) == 0 {
		return all, nil
	}
	var known []string
	for _, c := range all {
		known = append(known, c.Name)
	}
	for _, n := range names {
		if !slices.Contains(known, n) {
			return nil, fmt.Errorf("case %q: unknown; known: %s", n, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(all, func(c Case) bool { return !slices.Contains(names, c.Name) }), nil
}
