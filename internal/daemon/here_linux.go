package daemon

import (
	"errors"
	"net"

	"weft/internal/hostsetup"
	"weft/internal/service"
)

// Here says which keys of a configuration name what this machine does not have: a user, an
// address, an uplink. It changes nothing.
func (c *Config) Here() error {
	var missing error
	if _, err := service.LookUp(c.User); err != nil {
		missing = c.lines.Errorf("user", "%w", err)
	}
	if c.tunnels() {
		return missing // which takes any uplink
	}
	if c.Address.IsValid() {
		missing = errors.Join(missing, c.hasAddress())
	}
	for _, name := range c.Uplink {
		if _, err := net.InterfaceByName(name); err != nil {
			missing = errors.Join(missing, c.lines.Errorf("uplink", "there is no device %s on this machine, as ip link shows; write auto, or name one that leads into the fabric", name))
		}
	}
	return missing
}

// hasAddress says that the configuration's address is not on this machine.
func (c *Config) hasAddress() error {
	switch has, err := hostsetup.HasAddress(c.Address); {
	case err != nil:
		return err
	case !has:
		return c.lines.Errorf("address", "%s is not on this machine, as ip address shows; write auto, or the one that it has", c.Address)
	}
	return nil
}
