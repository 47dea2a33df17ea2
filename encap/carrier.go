package encap

import (
	"fmt"
	"net/netip"
	"strings"
)

// Carrier is the way in which a packet carries its path.
type Carrier uint8

// The carriers.
const (
	CarrierIPIP Carrier = iota // the address of the bouncing switch, in an IPv4 or IPv6 header
	CarrierSRv6                // labels, as micro-SIDs in an IPv6 address
	CarrierMPLS                // labels, as a stack of MPLS
)

var carriers = [...]struct {
	name     string
	overhead int
}{
	CarrierIPIP: {"ipip", Overhead},
	CarrierSRv6: {"srv6", ip6Overhead},
	CarrierMPLS: {"mpls", 4 * 4},
}

// String returns the carrier's name, which ParseCarrier takes.
func (c Carrier) String() string {
	if int(c) >= len(carriers) {
		return fmt.Sprintf("carrier %d", uint8(c))
	}
	return carriers[c].name
}

// ParseCarrier finds a carrier by its name: ipip, srv6 or mpls.
func ParseCarrier(name string) (Carrier, error) {
	var known []string
	for c, of := range carriers {
		if of.name == name {
			return Carrier(c), nil
		}
		known = append(known, of.name)
	}
	return 0, fmt.Errorf("encap: unknown carrier %q; known: %s", name, strings.Join(known, ", "))
}

// Overhead is what the carrier adds to a packet, in bytes; 0 for an unknown one. For MPLS
// it is four labels, the most that a path of a three-level Clos has. For IP-in-IP it is
// an IPv4 header: see OverheadFrom.
func (c Carrier) Overhead() int {
	if int(c) >= len(carriers) {
		return 0
	}
	return carriers[c].overhead
}

// OverheadFrom is Overhead for packets whose outer source is src: with IP-in-IP, both outer
// addresses are of its family.
func (c Carrier) OverheadFrom(src netip.Addr) int {
	if c == CarrierIPIP && src.Unmap().Is6() {
		return ip6Overhead
	}
	return c.Overhead()
}
