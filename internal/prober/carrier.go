package prober

import (
	"errors"
	"fmt"
	"net/netip"

	"weft/encap"
	"weft/topology"
)

func (c *Config) checkCarrier() error {
	switch {
	case c.Carrier == encap.CarrierIPIP:
		return nil
	case c.Carrier != encap.CarrierSRv6:
		return fmt.Errorf("Carrier %v is not of IP; use ipip or srv6", c.Carrier)
	case !c.Gateway.IsValid():
		return errors.New("Gateway is missing: name the edge switch's address")
	}
	return nil
}

// outerOf is the outer header from a host to a bouncing switch, or out of these
// ports.
func outerOf(c encap.Carrier, from, via netip.Addr, ports []int) (encap.Outer, error) {
	if c == encap.CarrierIPIP {
		return encap.NewIPIPOuter(from, via)
	}
	sids, err := encap.SIDs(ports)
	if err != nil {
		return encap.Outer{}, err
	}
	return encap.NewSRv6Outer(topology.Addr6(from), sids)
}
