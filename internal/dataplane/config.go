package dataplane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"

	"weft/encap"
	"weft/flowcell"
	"weft/internal/clock"
	"weft/internal/paths"
	"weft/policy"
	"weft/resequencer"
	"weft/topology"
)

// Config configures an egress and the ingress beside it. stack.Config and GatewayConfig
// describe the fields.
type Config struct {
	Address  netip.Addr
	Address6 netip.Addr     // of the same host, IPv6; zero: none
	Behind   []netip.Prefix // what is behind this host, to which packets are handed over, too
	Topology *topology.Topology
	// Topology6 is the same fabric as Address6 sees it; nil: IPv6 has no bouncing addresses.
	Topology6 *topology.Topology
	Device    Device
	Tunnel    *Tunnel // in place of Topology and Device

	Policy        string         // "" means policy.Default
	PolicyOptions policy.Options // of all policies
	Policies      []PrefixPolicy // in place of Policy; the longest prefix counts
	// UplinkEncapsulates says that a program at the uplink encapsulates, by the number in
	// the packet.
	UplinkEncapsulates bool
	// Samples says that there is an Ingress besides, which takes in samples. Without it
	// policies that sample go by their Rule.
	Samples        bool
	SprayDatagrams bool
	Resequencer    resequencer.Config
	Timestamps     bool // SYNs keep the timestamps option
	Carrier        encap.Carrier
	// Inner6 says that the bouncing switches take IPv6 out of outer headers as they take
	// IPv4, and that receivers put it in order. Probes do not show that. Without it, IPv6
	// leaves plain.
	Inner6 bool
	Seed   uint64      // 0 means a random one
	Clock  clock.Clock // nil means the real time
}

// minMTU is 576 bytes, which every IPv4 host must accept (RFC 791), and the outer
// header.
func (c *Config) minMTU() int { return 576 + c.overhead() }

// overhead is what the outer header adds to a packet, in bytes.
func (c *Config) overhead() int { return c.Carrier.OverheadFrom(c.Address) }

// leastMTU6 is the MTU that IPv6 needs, in bytes (RFC 8200 §5). A packet as long as this
// must fit behind an outer header: nobody may cut it.
const leastMTU6 = 1280

// inner6 reports whether IPv6 is encapsulated.
func (c *Config) inner6() bool { return c.Inner6 && c.Tunnel == nil && c.MTU() >= leastMTU6 }

// MTU is that of inner packets, in bytes.
func (c *Config) MTU() int {
	if c.Tunnel != nil {
		return c.Tunnel.Underlay.MTU() - c.Tunnel.overhead()
	}
	return c.Device.MTU() - c.overhead()
}

// Validate checks a config, and returns its policy. An error begins with the name
// of the field.
func (c *Config) Validate() (policy.Policy, error) {
	c.Address = c.Address.Unmap()
	if c.Tunnel != nil {
		if err := c.Tunnel.validate(); err != nil {
			return policy.Policy{}, fmt.Errorf("Tunnel.%w", err)
		}
	} else if err := c.validateFabric(); err != nil {
		return policy.Policy{}, err
	}
	return c.policy()
}

// validateFabric checks what leads packets into a fabric of known paths.
func (c *Config) validateFabric() error {
	if c.Topology == nil {
		return errors.New("Topology is missing: topology.Parse makes one")
	}
	if c.Device == nil {
		return errors.New("Device is missing: link.OpenTUN opens one")
	}
	if err := c.validateCarrier(); err != nil {
		return err
	}
	if mtu := c.Device.MTU(); mtu < c.minMTU() || mtu > 65535 {
		return fmt.Errorf("Device has an MTU of %d bytes, must be from %d to 65535", mtu, c.minMTU())
	}
	id, ok := c.Topology.ByAddr(c.Address)
	if !ok {
		return fmt.Errorf("Address %v is not in %v; a stack on host h0.0.2 would use %v",
			c.Address, c.Topology, c.Topology.EmbeddedAddr(0))
	}
	if n := c.Topology.Node(id); n.Layer != topology.LayerHost {
		return fmt.Errorf("Address %v belongs to the switch %s, not to a host", c.Address, n.Name)
	}
	if err := c.validateAddress6(); err != nil {
		return err
	}
	return c.validateTopology6()
}

// validateAddress6 checks the IPv6 address of a host.
func (c *Config) validateAddress6() error {
	a := c.Address6
	if a == (netip.Addr{}) {
		return nil
	}
	if !a.Is6() || a.Is4In6() || a.Zone() != "" || !a.IsGlobalUnicast() {
		return fmt.Errorf("Address6 %v is not a global IPv6 address without a zone: give one, or none", a)
	}
	host, edge, ok := hostAt(c.Topology, a)
	own, ownEdge, _ := hostAt(c.Topology, c.Address)
	if ok && (edge != ownEdge || host.Is4() && host != own) { // where the fabric is data, racks are all it knows
		return fmt.Errorf("Address6 %v belongs to %s, and Address %v to %s: give addresses of one host", a, c.Topology.HostName(host), c.Address, c.Topology.HostName(own))
	}
	return nil
}

// validateCarrier checks that the Device and the fabric can carry the Carrier.
func (c *Config) validateCarrier() error {
	switch c.Carrier {
	case encap.CarrierIPIP:
		return nil
	case encap.CarrierSRv6:
		if err := paths.CheckSRv6(c.Topology); err != nil {
			return fmt.Errorf("Carrier srv6: %w", err)
		}
		return nil
	case encap.CarrierMPLS:
		return errors.New("Carrier mpls needs a device that carries more than IP, which a Device does not: choose ipip or srv6")
	}
	return fmt.Errorf("Carrier is %v, which is unknown: choose encap.CarrierIPIP or CarrierSRv6", c.Carrier)
}

// policy checks how packets are spread and put in order.
func (c *Config) policy() (policy.Policy, error) {
	var none policy.Policy
	if err := c.Resequencer.Validate(); err != nil {
		return none, fmt.Errorf("Resequencer: %w", err)
	}
	if c.Policy == "" {
		c.Policy = policy.Default
	}
	if err := c.PolicyOptions.Validate(); err != nil {
		return none, fmt.Errorf("PolicyOptions: %w", err)
	}
	p, err := policy.New(c.Policy, c.PolicyOptions)
	if err != nil {
		return none, fmt.Errorf("Policy: %w", err)
	}
	// Packets that each take a path of their own the Egress encapsulates itself.
	if packets := p.Unit.Kind == flowcell.UnitPacket; c.UplinkEncapsulates && !packets && !p.AtUplink() {
		return none, fmt.Errorf("Policy %s cannot be carried out by the Device, which encapsulates and does not know %s: choose another policy", c.Policy, p.UplinkLacks())
	}
	return p.At(c.PolicyOptions.Rate(c.Topology.Slowest())), nil
}

// draw chooses the seeds that are not given.
func (c *Config) draw() {
	for c.Seed == 0 {
		c.Seed = rand.Uint64()
	}
	if c.Resequencer.Seed == 0 {
		c.Resequencer.Seed = rand.NewPCG(c.Seed, 0x7265736571).Uint64()
	}
}
