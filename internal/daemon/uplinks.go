package daemon

import (
	"errors"
	"fmt"
	"strings"

	"weft/topology"
)

// checkUplinks checks a list of several uplinks.
func (c *Config) checkUplinks() error {
	n := len(c.Uplink)
	if n < 2 {
		return nil
	}
	if c.learns() && n != len(c.BGP.Neighbors) {
		return c.lines.Errorf("uplink", "names %d devices, and bgp.neighbors %d switches; name for each neighbor the device that leads to it, in the same order", n, len(c.BGP.Neighbors))
	}
	if err := c.severalUplinks(); err != nil {
		return c.lines.Errorf("uplink", "names %d devices, and %w; or name one device", n, err)
	}
	return nil
}

// severalUplinks says why a configuration takes but one uplink, nil if it takes several.
func (c *Config) severalUplinks() error {
	switch {
	case c.tunnels():
		return errors.New("encapsulation: udp goes as the kernel's routes have it; use ipip")
	case c.receives():
		return errors.New("the order of what arrives is restored at one uplink only; use mode: offload with resequence: false, or policy drb")
	case c.samples():
		return fmt.Errorf("policy %s samples paths by one uplink only; use drb or presto", c.Policy)
	case c.Gateway.IsValid():
		return errors.New("gateway is of one uplink; leave it out")
	}
	return nil
}

// devices returns the devices of the host's uplinks in the order of the fabric's, nil if weft
// uses one uplink, whatever others there are.
func (c *Config) devices() ([]string, error) {
	ups := c.fabric.Uplinks()
	switch {
	case len(c.Uplink) == 1 || len(c.Uplink) == 0 && (len(ups) < 2 || c.severalUplinks() != nil):
		return nil, nil
	case len(ups) == 0:
		return nil, fmt.Errorf("names %d devices, and hosts of %s have one uplink; name one", len(c.Uplink), c.Topology)
	case len(c.Uplink) > 0 && !c.learns() && len(c.Uplink) != len(ups):
		var switches []string
		for _, u := range ups {
			switches = append(switches, c.fabric.Node(u.Edge).Name)
		}
		return nil, fmt.Errorf("names %d devices, and this host is wired to %d edge switches of %s (%s); name for each the device that leads to it, in this order",
			len(c.Uplink), len(ups), c.Topology, strings.Join(switches, ", "))
	case len(c.Uplink) > 0 && !c.learns():
		return c.Uplink, nil
	case len(ups) < 2:
		return nil, nil // of several switches one has been heard of
	}
	var names []string
	for _, u := range ups {
		if u.Port == "" {
			return nil, nil
		}
		names = append(names, u.Port)
	}
	return names, nil
}

// bounceBy returns a node where paths bounce that begin with an uplink of the host's.
func bounceBy(t *topology.Topology, from int) (n topology.Node, ok bool) {
	for _, l := range t.Beyond(from) {
		return t.Node(t.Link(l).B), true
	}
	return n, false
}
