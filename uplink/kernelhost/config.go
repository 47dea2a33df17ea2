package kernelhost

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"weft/encap"
	"weft/internal/daemon"
	"weft/policy"
	"weft/resequencer"
	"weft/stack"
	"weft/uplink"
)

// check checks what a Host of this package cannot do.
func check(c *stack.Config) error {
	refuse := func(field, why string) error {
		return fmt.Errorf("kernelhost: Config.%s is set, but %s: leave it out, or use uplink.NewHost", field, why)
	}
	l := c.Liveness
	switch {
	case c.Device != nil || c.Tunnel != nil:
		return refuse("Device or Tunnel", "the kernel sends by the uplink itself")
	case len(c.Policies) > 0:
		return refuse("Policies", "the program at the uplink has one policy")
	case c.SprayDatagrams:
		return refuse("SprayDatagrams", "the kernel's UDP keeps to one path a flow")
	case c.CarryIPv6:
		return refuse("CarryIPv6", "IPv6 is carried by outer headers of IPv6, see Topology6")
	case c.TCP != stack.TCP{}:
		return refuse("TCP", "it is of netstack's TCP; sysctl has the kernel's options")
	case c.Simulation != stack.Simulation{}:
		return refuse("Simulation", "the kernel lives in real time")
	case c.PolicyOptions.LinkRateBits != 0:
		return refuse("PolicyOptions.LinkRateBits", "the rates are those of Topology")
	case l != nil && (l.MinHold != 0 || l.MaxHold != 0):
		return refuse("Liveness.MinHold or MaxHold", "the defaults are used")
	case c.Resequencer.Seed != 0:
		return refuse("Resequencer.Seed", "a secret one is drawn")
	case c.Topology == nil:
		return errors.New("kernelhost: Config.Topology is missing: topology.Parse makes one")
	case c.Carrier != encap.CarrierIPIP && c.Carrier != encap.CarrierSRv6:
		return fmt.Errorf("kernelhost: Config.Carrier is %v, but the kernel's packets go by IP: use ipip or srv6", c.Carrier)
	}
	if err := c.Resequencer.Validate(); err != nil {
		return fmt.Errorf("kernelhost: Config.Resequencer: %w", err)
	}
	if err := checkAddress(c); err != nil {
		return err
	}
	if c.Policy == "" {
		c.Policy = policy.Default
	}
	p, err := policy.New(c.Policy, c.PolicyOptions)
	if err != nil {
		return fmt.Errorf("kernelhost: Config.Policy: %w", err)
	}
	if lacks := p.UplinkLacks(); lacks != "" {
		return fmt.Errorf("kernelhost: Config.Policy %s needs %s, which the program at the uplink has not: use %s, or uplink.NewHost",
			p.Name, lacks, strings.Join(policy.NamesAtUplink(), ", "))
	}
	return nil
}

func checkAddress(c *stack.Config) error {
	c.Address = c.Address.Unmap()
	id, ok := c.Topology.ByAddr(c.Address)
	if !ok || int(id) >= c.Topology.NumHosts() {
		return fmt.Errorf("kernelhost: Config.Address %v is no host's in %v; that of %s is %v",
			c.Address, c.Topology, c.Topology.Node(0).Name, c.Topology.Node(0).Addr)
	}
	if n := c.Topology.Node(id); n.Addr != c.Address {
		return fmt.Errorf("kernelhost: Config.Address %v is that of an embedded stack on %s; its kernel's is %v", c.Address, n.Name, n.Addr)
	}
	switch t := c.Topology6; {
	case t == nil && c.Address6.IsValid():
		return fmt.Errorf("kernelhost: Config.Address6 is %v, and Topology6 is missing: topology.FromGraph makes one", c.Address6)
	case t == nil:
	case t.Computed() || t.Node(0).Addr != c.Address6:
		return fmt.Errorf("kernelhost: Config.Topology6 is not the fabric as Address6, %v, sees it", c.Address6)
	}
	return nil
}

// hostConfig is what a daemon's file would say.
func hostConfig(c *stack.Config, o uplink.Options) daemon.Config {
	d := daemon.Defaults()
	d.Address, d.MTU, d.Policy = c.Address, o.MTU, c.Policy
	if o.Interface != "" {
		d.Uplink = []string{o.Interface}
	}
	if c.Carrier == encap.CarrierSRv6 {
		d.Encapsulation = []string{daemon.EncapSRv6}
	}
	p, r := c.PolicyOptions, c.Resequencer
	set(&d.FlowcellBytes, p.FlowcellBytes)
	set(&d.FlowletGap, p.FlowletGap)
	set(&d.Samples, p.Samples)
	set(&d.Expiry, p.Expiry)
	d.SamplesOnly = p.SamplesOnly
	if r.Discipline != resequencer.Presto {
		d.Resequencer.Discipline = strings.ToLower(r.Discipline.String())
	}
	set(&d.Resequencer.Hold, r.Hold)
	set(&d.Resequencer.MinHold, r.MinHold)
	set(&d.Resequencer.Merge, r.Merge)
	set(&d.Resequencer.FlowPackets, r.FlowPackets)
	set(&d.Resequencer.FlowBytes, r.FlowBytes)
	set(&d.Resequencer.PeerPackets, r.PeerPackets)
	set(&d.Resequencer.PeerBytes, r.PeerBytes)
	set(&d.Resequencer.TotalPackets, r.TotalPackets)
	set(&d.Resequencer.TotalBytes, r.TotalBytes)
	set(&d.Resequencer.Flows, r.Flows)
	l := c.Liveness
	d.Failures.Probes = l != nil
	if l != nil {
		d.Require = l.Require
		set(&d.Failures.Interval, l.Interval)
		set(&d.Failures.Multiplier, l.Multiplier)
		set(&d.Failures.Budget, int(l.Budget))
		set(&d.Failures.Floor, l.Floor)
	}
	return d
}

// set sets what is not left to its default.
func set[T comparable](to *T, value T) {
	if !reflect.ValueOf(value).IsZero() {
		*to = value
	}
}
