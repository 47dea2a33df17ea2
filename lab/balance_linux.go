package lab

import (
	"time"

	"github.com/vishvananda/netlink"

	"weft/fabric"
	"weft/internal/kernel"
	"weft/topology"
)

// balanceConfig is how a switch balances.
func (c Config) balanceConfig(n topology.Node, plan fabric.NodePlan) fabric.BalanceConfig {
	cfg := fabric.BalanceConfig{Rule: c.Balance, Routes: plan.Routes}
	for i, port := range c.ports(n.ID) {
		p := fabric.MeterPort{Name: plan.Ports[i].Name}
		if !c.Unlimited { // else it has what the device says
			mbit := c.linkRate(port.Link)
			p.RateBits, p.QueueBytes, p.BurstBytes = mbit*1e6, c.queueBytes(mbit), c.BurstBytes
		}
		cfg.Ports = append(cfg.Ports, p)
	}
	cfg.Leaf = c.leafConfig(n.ID, nil)
	return cfg
}

// leafConfig is where a leaf switch is, which finds out of failures at its own ports alone:
// in a lab nobody tells switches of others.
func (c Config) leafConfig(id topology.NodeID, failed map[topology.LinkID]FailureMode) fabric.LeafConfig {
	l := fabric.LeafConfig{Topology: c.Topology, Self: id}
	var down []topology.LinkID
	for _, port := range c.ports(id) {
		l.Links = append(l.Links, port.Link)
		if failed[port.Link] == FailLoud {
			down = append(down, port.Link)
		}
	}
	if l.Topology != nil {
		l.Topology = l.Topology.Without(down...)
	}
	return l
}

// balance has a switch balance, in the namespace of the calling thread.
func (b *builder) balance(n topology.Node, plan fabric.NodePlan) error {
	if !fabric.BalancesAt(b.cfg.Balance, n.Layer) {
		return nil
	}
	at, err := fabric.AttachBalance(b.cfg.balanceConfig(n, plan))
	if err != nil {
		return err
	}
	return at.Close()
}

// rebalance has a switch balance again that does not at all of its ports, or whose kernel
// does not heed the programs.
func (r *labRepair) rebalance(h *netlink.Handle, n topology.Node, plan fabric.NodePlan, report *fabric.Report) error {
	if !fabric.BalancesAt(r.cfg.Balance, n.Layer) {
		return nil
	}
	links, err := kernel.Links(h, portNames(plan))
	if err != nil {
		return err
	}
	missing := 0
	for _, link := range links {
		for _, place := range []kernel.Filter{kernel.BalanceFilter, kernel.QueueFilter} {
			id, err := place.Program(h, link)
			if err != nil {
				return err
			}
			if id == 0 {
				missing++
			}
		}
	}
	if missing == 0 && fabric.HeedsBalance() {
		return r.cfg.refreshBalance(n.ID, portNames(plan), r.failed)
	}
	report.Add(1, "put back what balances")
	return r.balance(n, plan)
}

// refreshBalance has switches balance over the next hops that are live now.
func (l *Lab) refreshBalance(switches map[topology.NodeID]bool, failed failures) error {
	if !fabric.BalancesByProgram(l.Config.Balance) {
		return nil
	}
	modes, err := failed.modes(l.Config)
	if err != nil {
		return err
	}
	for id := range switches {
		n, err := l.node(id)
		if err != nil {
			return err
		}
		if err := l.Do(id, func() error { return l.Config.refreshBalance(id, n.ports, modes) }); err != nil {
			return err
		}
	}
	return nil
}

// refreshBalance has a switch balance over what is live, in the namespace of the calling
// thread.
func (c Config) refreshBalance(id topology.NodeID, ports []string, failed map[topology.LinkID]FailureMode) error {
	if !fabric.BalancesAt(c.Balance, c.plant().Node(id).Layer) {
		return nil
	}
	if fabric.BalanceRoom(c.Balance) > 0 {
		return fabric.RefreshLeaf(ports, c.leafConfig(id, failed))
	}
	return fabric.RefreshBalance(ports)
}

// settleBalance is refreshBalance at the ends of links that have been changed, once the
// kernel has found that they are up or down.
func (l *Lab) settleBalance(changed []transition, failed failures) error {
	if !fabric.BalancesByProgram(l.Config.Balance) {
		return nil
	}
	switches := make(map[topology.NodeID]bool)
	end := time.Now().Add(linkLimit)
	for _, c := range changed {
		k := l.Config.plant().Link(c.link)
		for _, id := range []topology.NodeID{k.A, k.B} {
			e, err := l.end(c.link, id)
			if err != nil {
				return err
			}
			for time.Now().Before(end) {
				now, err := e.node.LinkByIndex(e.link.Attrs().Index)
				if err != nil || (now.Attrs().OperState == netlink.OperUp) == (c.to != FailLoud) {
					break
				}
				time.Sleep(time.Millisecond)
			}
			if l.Config.plant().Node(id).Layer != topology.LayerHost {
				switches[id] = true
			}
		}
	}
	return l.refreshBalance(switches, failed)
}

// RefreshBalance has all switches balance over what is live now: next hops as their routes
// have them, or, at leaves, the paths but for those over links of their own that have failed.
func (l *Lab) RefreshBalance() error {
	switches := make(map[topology.NodeID]bool)
	for n := range l.Config.nodes() {
		if n.Layer != topology.LayerHost {
			switches[n.ID] = true
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	state, err := readState(l.Config.Name)
	if err != nil || state == nil {
		return err
	}
	return l.refreshBalance(switches, state.Failures)
}

// Balanced returns what a switch has balanced; nil if the lab's switches do not.
func (l *Lab) Balanced(id topology.NodeID) (s *fabric.BalanceStats, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.node(id)
	if err != nil {
		return nil, err
	}
	err = l.Do(id, func() error {
		s, err = fabric.ReadBalance(n.Handle, n.links)
		return err
	})
	if s != nil {
		s.Rule = l.Config.Balance
	}
	return s, err
}
