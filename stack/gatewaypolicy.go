package stack

import "weft/policy"

// atUplink reports whether the uplink's program carries a policy out, if it is one.
func atUplink(name string, o policy.Options) bool {
	p, err := policy.New(name, o)
	return err == nil && p.AtUplink()
}

// gatewayAware is what policies go by that a Gateway carries out itself: what
// receivers report, and what it has sent. Of samples the uplink's program is told by
// whom they concern, and draws meanwhile.
func (c *Config) gatewayAware(p policy.Policy) (a awareConfig) {
	if p.Aware > policy.Sampled {
		a = newAwareConfig(c, p, c.Resequencer.Seed)
	}
	return a
}

// SetPolicy makes later packets take paths by another policy, as
// GatewayConfig.Policy and PolicyOptions say. Where that is for the uplink's program
// to carry out, the program must have been told before.
func (g *Gateway) SetPolicy(name string, o policy.Options) error {
	c := g.config
	c.Policy, c.PolicyOptions = name, o
	check := c.policy
	if g.egress.tunnel == nil {
		c.UplinkEncapsulates = atUplink(name, o)
		check = c.validate
	}
	p, err := check()
	if err != nil {
		return err
	}
	g.egress.setPolicy(p, c.gatewayAware(p), c.UplinkEncapsulates)
	return nil
}

// Congestion returns what the Gateway's policy knows of the paths to each rack that
// it sends to; nil where the policy does not look at congestion, or has the uplink's
// program choose.
func (g *Gateway) Congestion() []Congestion { return g.egress.congestion() }
