package dataplane

import (
	"fmt"

	"weft/flowcell"
	"weft/policy"
)

// atUplink reports whether the uplink's program carries a policy out, if it is one. Flowlets the
// Gateway cuts itself: they need no program.
func atUplink(name string, o policy.Options) bool {
	p, err := policy.New(name, o)
	return err == nil && p.AtUplink() && p.Unit.Kind != flowcell.UnitFlowlet
}

// SetPolicy makes later packets take paths by another policy, as GatewayConfig.Policy and
// PolicyOptions say. If the uplink's program carries it out, set the program's policy
// first.
func (g *Gateway) SetPolicy(name string, o policy.Options) error {
	for _, e := range g.egresses() {
		c := e.config
		c.Policy, c.PolicyOptions, c.Topology = name, o, e.Topology()
		if c.Tunnel == nil && e == g.egress {
			c.UplinkEncapsulates = atUplink(name, o)
		}
		p, err := c.Validate()
		if err != nil {
			return fmt.Errorf("dataplane: SetPolicy: %w", err)
		}
		e.setPolicy(p, o, newAwareConfig(&c, p, c.UplinkEncapsulates), c.UplinkEncapsulates)
	}
	return nil
}

// Congestion returns what the Gateway's policy knows of the paths to each rack that it
// sends to; nil if the policy does not use congestion, or the uplink's program chooses
// the paths.
func (g *Gateway) Congestion() (all []Congestion) {
	for _, e := range g.egresses() {
		all = append(all, e.Congestion()...)
	}
	return all
}
