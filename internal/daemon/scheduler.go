package daemon

import (
	"fmt"

	"weft/internal/elephant"
	"weft/policy"
	"weft/topology"
)

func (c *Config) checkScheduler() error {
	if err := c.Scheduler.Check(c.lines, c.fabric, "failures.keys", len(c.Failures.Keys) > 0); err != nil {
		return err
	}
	switch {
	case !c.Scheduler.On():
	case c.tunnels():
		return c.lines.Errorf("scheduler.servers", "is set with encapsulation: udp, whose paths nobody knows; leave it empty")
	case c.Mode == ModeGateway:
		return c.lines.Errorf("scheduler.servers", "is set with mode: gateway, in which not every packet passes the program that counts; use mode: offload")
	case c.policy().Aware == policy.Informed:
		return c.lines.Errorf("scheduler.servers", "is set with policy: %s, under which no flow can be pinned; use another policy", c.Policy)
	}
	return nil
}

// duty is what the program at the uplink does for schedulers.
func (c *Config) duty() elephant.Duty {
	if !c.Scheduler.On() || !c.offloads() {
		return elephant.Nothing
	}
	return elephant.PinAndCount
}

// knownPath says why a pin's path is none of a host's.
func knownPath(t *topology.Topology, self topology.NodeID, p elephant.Pin) error {
	if p.Flow.Src.Addr().Is6() { // the fabric is computed
		return fmt.Errorf("flow %v: IPv6 leaves this host plain: its edge switch pins it", p.Flow)
	}
	src, ok := t.ByAddr(p.Flow.Src.Addr())
	host, _, found := t.HostAt(p.Flow.Dst.Addr())
	if !ok || src != self || !found {
		return fmt.Errorf("flow %v: not from this host to one of %s", p.Flow, t)
	}
	set := t.PathsTo(self, host)
	if p.Path >= set.Count() || set.Addr(p.Path) != p.Via {
		return fmt.Errorf("flow %v: path %d by %v is none of its paths", p.Flow, p.Path, p.Via)
	}
	return nil
}
