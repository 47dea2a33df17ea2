package prober

import (
	"errors"
	"fmt"

	"weft/encap"
)

func (c *Config) checkCarrier() error {
	switch {
	case c.Carrier == encap.CarrierIPIP:
		return nil
	case c.Carrier != encap.CarrierSRv6:
		return fmt.Errorf("Carrier %v is not of IP; use ipip or srv6", c.Carrier)
	case !c.Gateway.IsValid() && len(c.Uplinks) == 0:
		return errors.New("Gateway is missing: name the edge switch's address")
	}
	return nil
}
