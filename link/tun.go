package link

import (
	"fmt"
	"net/netip"
	"slices"
)

// DefaultMTU is the MTU of a fabric where none is given, in bytes.
const DefaultMTU = 1500

// minMTU is the least that an IPv4 network must carry in one piece, plus an
// outer header (RFC 791: 68 bytes).
const minMTU = 68

// TUNConfig says how to open and configure a TUN interface.
type TUNConfig struct {
	// Name of the interface, at most 15 bytes; "" lets the kernel choose.
	Name string
	// Address is the kernel's own address on the interface. The zero Prefix means no
	// address, which is right for an embedded stack: its address must not be the
	// kernel's.
	Address netip.Prefix
	// Routes are the destinations that the kernel sends into the interface:
	// the /32 of the embedded stack, at least.
	Routes []netip.Prefix
	// MTU of the fabric in bytes; 0 means DefaultMTU.
	MTU int
	// Overhead is the length of the outer header in bytes. The interface's own MTU is MTU
	// less Overhead, so that the kernel tells senders how long packets may be.
	Overhead int
	// Offload asks for super-segments and for checksums that are still to be completed
	// (IFF_VNET_HDR, TUNSETOFFLOAD); TUN.Offloads says what the kernel gave. If it
	// refuses, packets pass one by one as without Offload.
	Offload bool
	// PayloadMax bounds the TCP payload, in bytes, of the super-segments of the kernel's
	// own TCP over IPv4; 0 means the kernel's bound, about 64 KB. It is for readers that
	// must not divide super-segments. It needs Linux 6.3; older kernels have no bound for
	// IPv4 alone, and ignore it. What the kernel forwards into the interface and is longer,
	// it cuts into packets, which is slow.
	PayloadMax int
	// Queues is the number of queues (IFF_MULTI_QUEUE), at most 255; 0 means 1. TUN.Read
	// and TUN.ReadSuper read all of them. To read them in parallel, read each by
	// TUN.Queue in its own goroutine.
	Queues int
	// NoForwardCheck leaves out the check that the kernel forwards in general. It is for
	// callers that enable forwarding for each interface.
	NoForwardCheck bool
}

// maxQueues is the kernel's bound (MAX_TAP_QUEUES in drivers/net/tun.c) less the
// one that TUN.Write writes to.
const maxQueues = 255

// minMTU6 is the least MTU of a link that carries IPv6 (RFC 8200 §5).
const minMTU6 = 1280

func (c *TUNConfig) validate() error {
	if c.MTU == 0 {
		c.MTU = DefaultMTU
	}
	if c.Queues == 0 {
		c.Queues = 1
	}
	switch {
	case len(c.Name) > 15:
		return fmt.Errorf("tun: Name %q is longer than 15 bytes", c.Name)
	case c.Overhead < 0:
		return fmt.Errorf("tun: Overhead is %d bytes, must not be negative", c.Overhead)
	case c.MTU-c.Overhead < minMTU || c.MTU > 65535:
		return fmt.Errorf("tun: MTU is %d bytes, must be from %d to 65535", c.MTU, minMTU+c.Overhead)
	case c.hasIPv6() && c.MTU-c.Overhead < minMTU6:
		return fmt.Errorf("tun: MTU is %d bytes, must be at least %d for the IPv6 addresses and routes", c.MTU, minMTU6+c.Overhead)
	case c.PayloadMax < 0:
		return errPayloadMax(c.PayloadMax)
	case c.Queues < 0 || c.Queues > maxQueues:
		return fmt.Errorf("tun: Queues is %d, must be from 1 to %d", c.Queues, maxQueues)
	}
	return nil
}

func errPayloadMax(n int) error {
	return fmt.Errorf("tun: PayloadMax is %d bytes, must not be negative", n)
}

func (c *TUNConfig) hasIPv6() bool {
	return c.Address.Addr().Is6() ||
		slices.ContainsFunc(c.Routes, func(p netip.Prefix) bool { return p.Addr().Is6() })
}
