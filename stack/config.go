package stack

import (
	"errors"
	"fmt"
	"net/netip"

	"weft/policy"
	"weft/resequencer"
	"weft/topology"
)

// Device is the network below a Host; package link has implementations and
// describes the methods.
type Device interface {
	Read(bufs [][]byte, sizes []int, offset int) (n int, err error)
	Write(bufs [][]byte, offset int) (n int, err error)
	MTU() int
	Close() error
}

// Config is what New needs. New copies it.
type Config struct {
	// Address is the stack's IPv4 address: one that Topology gives to a host,
	// usually its EmbeddedAddr. Required.
	Address netip.Addr
	// Topology is the fabric as it stands; SetTopology replaces it. Required.
	Topology *topology.Topology
	// Device carries the packets. The Host owns it from a successful New on
	// and closes it. Required.
	Device Device
	// Policy names how TCP is spread over the paths; "" means policy.Default.
	Policy string
	// SprayDatagrams spreads UDP and other protocols by Policy too. By default
	// all of them between two hosts keep to one path, since nothing puts them
	// back in order. (Ports do not count: fragments have none.)
	SprayDatagrams bool
	// Resequencer restores the order of incoming TCP; the zero value is DRB's:
	// hold for 10 ms at most.
	Resequencer resequencer.Config
	// Seed fixes where the selectors start and what they draw; 0 means a
	// random seed.
	Seed uint64
}

// minMTU is 576 bytes, which every IPv4 host must accept (RFC 791), and the
// outer header.
const minMTU = 576 + 20

func (c *Config) validate() (policy.Policy, error) {
	var none policy.Policy
	if c.Topology == nil {
		return none, errors.New("stack: Config.Topology is missing: topology.Parse makes one")
	}
	if c.Device == nil {
		return none, errors.New("stack: Config.Device is missing: link.OpenTUN opens one")
	}
	if mtu := c.Device.MTU(); mtu < minMTU || mtu > 65535 {
		return none, fmt.Errorf("stack: Config.Device has an MTU of %d bytes, must be from %d to 65535", mtu, minMTU)
	}
	c.Address = c.Address.Unmap()
	id, ok := c.Topology.ByAddr(c.Address)
	if !ok {
		return none, fmt.Errorf("stack: Config.Address %v is not in %v; a stack on host h0.0.2 would use %v",
			c.Address, c.Topology, c.Topology.EmbeddedAddr(0))
	}
	if n := c.Topology.Node(id); n.Layer != topology.LayerHost {
		return none, fmt.Errorf("stack: Config.Address %v belongs to the switch %s, not to a host", c.Address, n.Name)
	}
	if err := c.Resequencer.Validate(); err != nil {
		return none, fmt.Errorf("stack: Config.Resequencer: %w", err)
	}
	if c.Policy == "" {
		c.Policy = policy.Default
	}
	p, err := policy.Get(c.Policy)
	if err != nil {
		return none, fmt.Errorf("stack: Config.Policy: %w", err)
	}
	return p, nil
}
