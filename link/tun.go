package link

import (
	"fmt"
	"net/netip"
)

// DefaultMTU is the MTU of a fabric that says nothing else, in bytes.
const DefaultMTU = 1500

// minMTU is the least that an IPv4 network must carry in one piece, plus an
// outer header (RFC 791: 68 bytes).
const minMTU = 68

// TUNConfig says how to open and configure a TUN interface.
type TUNConfig struct {
	// Name of the interface, at most 15 bytes; "" lets the kernel choose.
	Name string
	// Address is the kernel's own address on the interface. The zero Prefix
	// leaves it unnumbered, which is right for an embedded stack: the address
	// of that one must not be the kernel's.
	Address netip.Prefix
	// Routes are the destinations that the kernel sends into the interface:
	// the /32 of the embedded stack, at least.
	Routes []netip.Prefix
	// MTU of the fabric in bytes; 0 means DefaultMTU.
	MTU int
	// Overhead is what encapsulation adds to a packet, in bytes. The
	// interface's own MTU is MTU less Overhead, so that the kernel, too, tells
	// senders what will come back.
	Overhead int
}

func (c *TUNConfig) validate() error {
	if c.MTU == 0 {
		c.MTU = DefaultMTU
	}
	switch {
	case len(c.Name) > 15:
		return fmt.Errorf("tun: Name %q is longer than 15 bytes", c.Name)
	case c.Overhead < 0:
		return fmt.Errorf("tun: Overhead is %d bytes, must not be negative", c.Overhead)
	case c.MTU-c.Overhead < minMTU || c.MTU > 65535:
		return fmt.Errorf("tun: MTU is %d bytes, must be from %d to 65535", c.MTU, minMTU+c.Overhead)
	}
	return nil
}
