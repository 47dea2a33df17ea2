package switchd

import (
	"fmt"
	"slices"

	"weft/fabric"
	"weft/internal/elephant"
	"weft/topology"
)

// checkScheduler checks what does not depend on the switch.
func (f *File) checkScheduler() error {
	if err := f.Scheduler.Check(f.lines, f.fabric, "keys", len(f.Keys) > 0); err != nil {
		return err
	}
	if f.Scheduler.On() && !f.fabric.Computed() {
		return f.lines.Errorf("scheduler.servers", "is set, and the topology is data; switches are told of paths of specified fabrics alone: leave it empty")
	}
	if f.Scheduler.On() && !fabric.Schedulable(f.Balance) {
		return f.lines.Errorf("scheduler.servers", "is set with balance: %s, under which no flow can be pinned; set balance to ecmp, rb, rrb, drb, letflow or drill", f.Balance)
	}
	return nil
}

// duty is what the program at a switch does for schedulers: at edge switches it counts and pins,
// at others that have a choice of ports up it pins.
func (f *File) duty(c Config) elephant.Duty {
	switch {
	case !f.Scheduler.On():
	case c.Topology.Node(c.Self).Layer == topology.LayerEdge:
		return elephant.PinAndCount
	case c.Topology.ChoosesUp(c.Self):
		return elephant.PinFlows
	}
	return elephant.Nothing
}

// unscheduled says why a switch where no program pins has nothing to do for schedulers. plain is why
// the program is not there. It returns "" if no scheduler is given.
func (f *File) unscheduled(c Config, plain string) string {
	switch {
	case !f.Scheduler.On():
		return ""
	case f.duty(c) == elephant.Nothing:
		return c.Topology.Node(c.Self).Name + " has no hosts and no choice of ports up, so no scheduler tells it of paths"
	}
	return plain
}

// portFor returns the place among a switch's ports of the one by which a pinned flow leaves it. Flows
// of IPv6 have the paths of the addresses of IPv4 that theirs belong to.
// An error says why the path is not one of the flow's through this switch.
func portFor(t *topology.Topology, self topology.NodeID, p elephant.Pin) (int, error) {
	src, ok := t.ByAddr(topology.Addr4(p.Flow.Src.Addr()))
	dst, ok2 := t.ByAddr(topology.Addr4(p.Flow.Dst.Addr()))
	if !ok || !ok2 || int(max(src, dst)) >= t.NumHosts() {
		return 0, fmt.Errorf("flow %v: not between hosts of %s", p.Flow, t)
	}
	set := t.Paths(src, dst)
	if p.Path >= set.Count() || set.Addr(p.Path) != p.Via {
		return 0, fmt.Errorf("flow %v: path %d by %v is none of its paths", p.Flow, p.Path, p.Via)
	}
	path := set.Path(p.Path)
	at := slices.Index(path.Hops, self)
	if at < 0 || at >= len(path.Links) {
		return 0, fmt.Errorf("flow %v: path %d does not lead by %s", p.Flow, p.Path, t.Node(self).Name)
	}
	by := slices.IndexFunc(t.Ports(self), func(port topology.Port) bool { return port.Link == path.Links[at] })
	if by < 0 {
		return 0, fmt.Errorf("flow %v: path %d leaves %s by no port", p.Flow, p.Path, t.Node(self).Name)
	}
	return by, nil
}
