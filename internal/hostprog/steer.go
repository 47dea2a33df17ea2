package hostprog

import (
	"fmt"
	"net/netip"
)

// Steered is the set of packets of one address that are handed to a reader.
type Steered uint8

// The sets. None includes IP-in-IP: it belongs to a bouncing switch's decapsulator or to
// the kernel.
const (
	// SteerTCP is unfragmented TCP; over IPv6, TCP without extension headers.
	SteerTCP Steered = 1 << iota
	// SteerEverything is all of the address's family, including fragments. Of IPv6 it leaves
	// the kernel what neighbours and routers ask and say (RFC 4861).
	SteerEverything
	// SteerTunnelErrors is ICMP errors about IP-in-IP packets that the address has sent,
	// and ICMPv6 errors about IPv6 in IPv6. A switch quotes the outer header (RFC 2003
	// §4, RFC 2473 §8), for which the kernel knows no socket.
	SteerTunnelErrors

	steerAny = SteerTCP | SteerEverything | SteerTunnelErrors
)

// SteerRule hands over packets to one address, IPv4 or IPv6.
type SteerRule struct {
	Address netip.Addr
	What    Steered
}

// maxSteered bounds the rules; MAX_ADDRESSES in bpf/steer.c. The socket's
// filter compares with one address after the other.
const maxSteered = 16

func checkSteerRules(rules []SteerRule) error {
	if n := len(rules); n < 1 || n > maxSteered {
		return fmt.Errorf("Rules are %d, must be 1 to %d", n, maxSteered)
	}
	seen := make(map[netip.Addr]bool)
	for _, r := range rules {
		a := r.Address.Unmap()
		switch {
		case !a.IsValid() || a.Zone() != "":
			return fmt.Errorf("Rules: address %v has a zone or is none; give an IPv4 or IPv6 address", r.Address)
		case seen[a]:
			return fmt.Errorf("Rules: address %v has two rules; join their What with |", a)
		case r.What == 0 || r.What&^steerAny != 0:
			return fmt.Errorf("Rules: What of %v is %d; use SteerTCP, SteerEverything, SteerTunnelErrors or several, joined with |", a, r.What)
		}
		seen[a] = true
	}
	return nil
}
