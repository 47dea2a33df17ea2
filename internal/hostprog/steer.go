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
	// SteerTCP is unfragmented TCP.
	SteerTCP Steered = 1 << iota
	// SteerEverything is all of IPv4, including fragments.
	SteerEverything
	// SteerTunnelErrors is ICMP errors about IP-in-IP packets that the address has sent.
	// A switch quotes the outer header (RFC 2003 §4), for which the kernel knows no
	// socket.
	SteerTunnelErrors

	steerAny = SteerTCP | SteerEverything | SteerTunnelErrors
)

// SteerRule hands over packets to one address, IPv4.
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
		case !a.Is4():
			return fmt.Errorf("Rules: address %v is not IPv4", r.Address)
		case seen[a]:
			return fmt.Errorf("Rules: address %v has two rules; join their What with |", a)
		case r.What == 0 || r.What&^steerAny != 0:
			return fmt.Errorf("Rules: What of %v is %d; use SteerTCP, SteerEverything, SteerTunnelErrors or several, joined with |", a, r.What)
		}
		seen[a] = true
	}
	return nil
}
