package throughput

import (
	"context"
	"fmt"
	"net/netip"

	"weft/bench/named"
	"weft/bench/testbed"
	"weft/topology"
	"weft/uplink"
)

// Case is one way to carry a TCP connection from one host to another.
type Case struct {
	Name  string
	About string // in words
	TCP   string // whose it is: the kernel's or netstack's
	way
	connections int // at a time; set by Run
}

// congestionControl is what every case uses; netstack's is fixed by its Host.
const congestionControl = "cubic"

// reference is the case that others are compared with.
const reference = "kernel"

// Cases returns all cases.
func Cases() []Case {
	all := []Case{
		{Name: "kernel", About: "the kernel's TCP at both ends, on the one path that ECMP gives it", TCP: "kernel", way: kernelTCP},
		{Name: "kernel-big", About: fmt.Sprintf("the same with super-segments of up to %d KB (BIG TCP)", bigBytes>>10), TCP: "kernel", way: kernelBig},
		{Name: "kernel-packets", About: "the kernel's TCP without super-segments, the limit of what goes packet by packet", TCP: "kernel", way: kernelPackets},
		{Name: "kernel-cards", About: "the kernel's TCP over links to hosts like those of network cards: packets pass, hosts merge (GRO)", TCP: "kernel", way: cards(kernelTCP)},
		{Name: "kernel-packets-cards", About: "both", TCP: "kernel", way: cards(kernelPackets)},
		{Name: "kernel-mptcp", About: "the kernel's MPTCP, 8 subflows over ECMP", TCP: "kernel", way: kernelMPTCP},
		{Name: "netstack", About: "netstack with super-segments, without weft; one path", TCP: "netstack", way: bareNetstack},
		{Name: "embedded/presto", About: "weft embedded, over the same devices, flowcells sprayed", TCP: "netstack", way: embedded("presto", uplink.Options{})},
		{Name: "embedded/auto", About: "the same by the default policy", TCP: "netstack", way: embedded("auto", uplink.Options{})},
		{Name: "embedded/busy", About: "embedded/presto by busy polling of " + busy.String() + " (uplink.Options)", TCP: "netstack", way: embedded("presto", uplink.Options{BusyPoll: busy})},
		{Name: "embedded/drb", About: "weft embedded, every packet by digit reversal", TCP: "netstack", way: embedded("drb", uplink.Options{})},
		{Name: "embedded/drb-cards", About: "the same over links like those of network cards", TCP: "netstack", way: cards(embedded("drb", uplink.Options{}))},
		{Name: "skeleton/presto", About: "weft embedded, over a TUN that takes a packet a call", TCP: "netstack", way: skeleton("presto")},
		{Name: "udp/presto", About: "weft embedded, over UDP sockets, without privileges", TCP: "netstack", way: tunnelled("presto", noCipher)},
		{Name: "udp/drb", About: "the same, every packet by digit reversal", TCP: "netstack", way: tunnelled("drb", noCipher)},
		{Name: "host/auto", About: "the kernel's TCP with weft host at both ends, by its defaults", TCP: "kernel", way: daemonized()},
		{Name: "host/auto-big", About: fmt.Sprintf("the same with super-segments of up to %d KB", bigBytes>>10), TCP: "kernel",
			way: big(daemonized(fmt.Sprintf("super_segment_bytes: %d", bigBytes)))},
		{Name: "gateway/presto", About: "the kernel's TCP through weft host at both ends", TCP: "kernel", way: daemonized("mode: gateway", "policy: presto")},
		{Name: "offload/presto", About: "the kernel's TCP, flowcells sprayed by weft host's program at the uplink, not put in order", TCP: "kernel",
			way: daemonized("mode: offload", "policy: presto", "resequence: false", "receivers_resequence: true")},
		{Name: "offload/presto-resequenced", About: "the same, put in order at both ends", TCP: "kernel",
			way: daemonized("mode: offload", "policy: presto", "resequence: true", "receivers_resequence: true")},
		{Name: "offload/presto-big", About: fmt.Sprintf("the same with super-segments of up to %d KB, each a flowcell", bigBytes>>10), TCP: "kernel",
			way: big(daemonized("mode: offload", "policy: presto", "resequence: true", "receivers_resequence: true", fmt.Sprintf("super_segment_bytes: %d", bigBytes)))},
		{Name: "offload/drb", About: "the kernel's TCP, every packet by digit reversal at the uplink, not put in order", TCP: "kernel",
			way: daemonized("mode: offload", "policy: drb")},
		{Name: "offload/drb-cards", About: "the same over links like those of network cards", TCP: "kernel", way: cards(daemonized("mode: offload", "policy: drb"))},
		{Name: "service/kernel", About: "a Go service on the kernel's TCP (package kernelhost) at both ends, flowcells sprayed and put in order", TCP: "kernel", way: kernelService("presto")},
		{Name: "wireguard-go", About: "the kernel's TCP through wireguard-go, ChaCha20-Poly1305; one path", TCP: "kernel", way: wireguard(false)},
		{Name: "wireguard-bare", About: "the same without cryptography: its tun and conn packages alone", TCP: "kernel", way: wireguard(true)},
		{Name: "tailscale", About: "the kernel's TCP through tailscaled, its defaults (MTU 1280, firewall rules), packets go directly; one path", TCP: "kernel", way: tailscale},
	}
	for _, name := range ciphers {
		all = append(all, Case{Name: "udp/" + name, About: "udp/presto with a key, by " + name, TCP: "netstack", way: tunnelled("presto", name)})
	}
	for _, name := range append([]string{noCipher}, ciphers...) {
		all = append(all, Case{Name: "tunnel/" + name, About: "the kernel's TCP through weft host's UDP tunnel (udp.encryption: " + name + "), flowcells sprayed over source ports", TCP: "kernel", way: tunnelledHost(name)})
	}
	return all
}

// way is how a case does it. supports says what is missing on this machine; nil
// needs nothing.
type way struct {
	supports func(context.Context, *bench) error
	// prepare changes the lab before the first round; nil changes nothing.
	prepare func(*bench) error
	// around changes the lab for a run of this case alone, and undo changes it back; nil
	// changes nothing.
	around func(*bench) (undo func() error, err error)
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

// key tells the runs of a case with so many connections from others.
func (c Case) key() string { return fmt.Sprintf("%s %d", c.Name, c.connections) }

// Select returns the cases with the given names, in the order of Cases, and
// all of them for no names.
func Select(names []string) ([]Case, error) {
	return named.Keep("case", Cases(), func(c Case) string { return c.Name }, names)
}
