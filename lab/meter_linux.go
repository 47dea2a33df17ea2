package lab

import (
	"weft/fabric"
	"weft/topology"
)

// meter has a switch's ports metered, in the namespace of the calling thread.
func (b *builder) meter(n topology.Node, plan fabric.NodePlan) error {
	if b.cfg.Meter == nil {
		return nil
	}
	var cfg fabric.MeterConfig
	for i, port := range b.cfg.ports(n.ID) {
		cfg.Ports = append(cfg.Ports, b.cfg.Meter.port(b.cfg, plan.Ports[i].Name, b.cfg.linkRate(port.Link)))
	}
	m, err := fabric.AttachMeter(cfg)
	if err != nil {
		return err
	}
	return m.Close()
}

// PortMeters returns what the meters of a switch have measured, in the order of its ports.
// It returns none if the lab has no Meter.
func (l *Lab) PortMeters(id topology.NodeID) ([]fabric.PortMeter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.node(id)
	if err != nil {
		return nil, err
	}
	counters, err := n.counters()
	if err != nil {
		return nil, err
	}
	var all []fabric.PortMeter
	err = l.Do(id, func() error {
		all, err = n.meters(counters)
		return err
	})
	return all, err
}

// meters are nil where there is none. It runs in the node's namespace.
func (n *nodeHandle) meters(counters []PortCounters) ([]fabric.PortMeter, error) {
	byIndex, err := fabric.ReadMeters(n.Handle, n.links)
	if err != nil || len(byIndex) == 0 {
		return nil, err
	}
	all := make([]fabric.PortMeter, len(n.links))
	for i, link := range n.links {
		all[i] = byIndex[link.Attrs().Index]
		all[i].Port, all[i].Drops = n.ports[i], counters[i].Drops
	}
	return all, nil
}
