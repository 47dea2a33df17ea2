package daemon

import (
	"strings"

	"weft/flowcell"
	"weft/policy"
)

func (c *Config) policyOptions() policy.Options {
	return policy.Options{FlowcellBytes: c.FlowcellBytes, FlowletGap: c.FlowletGap, Samples: c.Samples, Expiry: c.Expiry,
		SamplesOnly: c.SamplesOnly, Tau: c.Tau, Groups: c.Groups}
}

// policy returns the configuration's, with the unit that fits its fabric; validate has found it
// good.
func (c *Config) policy() policy.Policy {
	p, _ := policy.New(c.Policy, c.policyOptions())
	if c.tunnels() {
		return p // nobody knows what is below
	}
	return p.At(c.rate())
}

// rate is that of the slowest link between switches, in bit/s; 0 if nobody knows it.
func (c *Config) rate() float64 { return c.policyOptions().Rate(c.fabric.Slowest()) }

// cutsAtUplink reports whether the program at the uplink cuts TCP into units,
// which it does as well as the dataplane, and without copies.
func (c *Config) cutsAtUplink() bool {
	p := c.policy()
	return !c.tunnels() && c.atUplink() && p.Unit.Cuts()
}

// atUplink reports whether the program at the uplink carries the policy out. In mode gateway,
// where userspace sees the packets of flowlets anyway, the dataplane does.
func (c *Config) atUplink() bool {
	p := c.policy()
	return p.AtUplink() && (p.Unit.Kind != flowcell.UnitFlowlet || c.offloads())
}

// numbersAtUplink reports whether that program also numbers the units: flowcells have numbers.
func (c *Config) numbersAtUplink() bool { return c.cutsAtUplink() && c.policy().Unit.Numbers() }

// perPacket reports whether every packet takes a path of its own.
func (c *Config) perPacket() bool {
	p := c.policy()
	return p.Sprays() && p.Unit.Kind == flowcell.UnitPacket
}

// cutsLate reports whether super-segments, of which each packet takes a path of its own, are to
// be whole as far as the uplink's egress: on links of more than 1 Gbit/s, and where nobody knows
// the rate. On slower links queues are short, and what TCP has cut itself it is told of when its
// own queue drops it.
func (c *Config) cutsLate() bool {
	return c.offloads() && c.perPacket() && !(c.rate() > 0 && c.rate() <= 1e9)
}

// diverts reports whether what programs send passes the dataplane.
func (c *Config) diverts() bool { return !c.offloads() && !c.cutsAtUplink() }

// samples reports whether paths are probed for their congestion.
func (c *Config) samples() bool { return !c.tunnels() && c.policy().Aware == policy.Sampled }

// uplinkPolicy is the policy of the program at the uplink. Packets that a policy leaves
// alone, such as UDP, go by flow.
func (c *Config) uplinkPolicy() policy.Policy {
	if c.atUplink() {
		return c.policy()
	}
	return policy.PerFlow
}

func (c *Config) checkPolicy() error {
	o := c.policyOptions()
	if err := (policy.Options{FlowcellBytes: o.FlowcellBytes}).Validate(); err != nil || o.FlowcellBytes == 0 {
		return c.between("flowcell_bytes", o.FlowcellBytes, policy.MinFlowcellBytes, policy.MaxFlowcellBytes)
	}
	if err := (policy.Options{FlowletGap: o.FlowletGap}).Validate(); err != nil || o.FlowletGap == 0 {
		return c.lines.Errorf("flowlet_gap", "is %v, must be from %v to %v", o.FlowletGap, policy.MinFlowletGap, policy.MaxFlowletGap)
	}
	if err := c.between("samples", c.Samples, 1, policy.MaxSamples); err != nil {
		return err
	}
	if err := (policy.Options{Expiry: c.Expiry}).Validate(); err != nil {
		return c.lines.Errorf("expiry", "is %v, must be from %v to %v, or auto", c.Expiry, policy.MinExpiry, policy.MaxExpiry)
	}
	if err := (policy.Options{Tau: c.Tau}).Validate(); err != nil {
		return c.lines.Errorf("tau", "is %v, must be from %v to %v, or auto", c.Tau, policy.MinTau, policy.MaxTau)
	}
	p, err := policy.New(c.Policy, o)
	if err != nil {
		return c.lines.Errorf("policy", "%q is unknown; use %s", c.Policy, strings.Join(policy.Names(), ", "))
	}
	switch {
	case !c.Groups:
	case !p.Sprays():
		return c.lines.Errorf("groups", "policy %s keeps each flow to one path already; remove groups", p.Name)
	case p.Aware == policy.Sampled:
		return c.lines.Errorf("groups", "policy %s takes the path that its samples say is the best, of whichever group; remove groups, or use another policy, such as drb", p.Name)
	case c.tunnels():
		return c.lines.Errorf("groups", "nobody knows the paths below a tunnel; remove groups")
	case c.Mode == ModeOffload && p.UplinkLacks() != "":
		return c.lines.Errorf("groups", "in mode offload the program at the uplink decides, and it does not know %s; use mode: gateway, or remove groups", p.UplinkLacks())
	}
	if c.settle(nil); c.offloads() && !p.AtUplink() {
		return c.lines.Errorf("policy", "%s is decided packet by packet in weft, past which mode offload sends; use mode: gateway, or %s", p.Name, strings.Join(policy.NamesAtUplink(), ", "))
	}
	return nil
}
