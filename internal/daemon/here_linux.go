package daemon

import (
	"errors"
	"net"

	"weft/internal/hostsetup"
	"weft/internal/service"
)

// Here says which keys of the configuration in a file name what this machine does not have, a
// user, an address, an uplink, and what the user that the daemon becomes may not read. It changes
// nothing.
func (c *Config) Here(file string) error {
	a, err := service.LookUp(c.User)
	if err != nil {
		err = c.lines.Errorf("user", "%w", err)
	}
	if !c.tunnels() { // which takes any uplink
		err = errors.Join(err, c.namesItsOwn())
	}
	if err != nil {
		return err
	}
	if err := a.Reads(func() error { _, err := Load(file); return err }); err != nil {
		return c.lines.Errorf("user", "%w", err)
	}
	return nil
}

// namesItsOwn says which addresses and devices of the configuration this machine does not have.
func (c *Config) namesItsOwn() (missing error) {
	if c.Address.IsValid() {
		missing = c.hasAddress()
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
