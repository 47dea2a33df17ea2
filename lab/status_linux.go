package lab

import (
	"fmt"

	"github.com/vishvananda/netlink"

	"weft/fabric"
	"weft/internal/kernel"
	"weft/topology"
)

// PortCounters count the packets that left a port since the lab was built. Bytes are those
// of Ethernet frames without checksum, which is also what the rate counts. In a lab that is
// Unlimited a super-segment is one packet with one header.
type PortCounters struct {
	Port      string `json:"port"`
	TxBytes   uint64 `json:"tx_bytes"`
	TxPackets uint64 `json:"tx_packets"` // modulo 2³²
	Drops     uint64 `json:"drops"`      // by the full queue; modulo 2³²
	Backlog   uint64 `json:"backlog"`    // bytes in the queue now
}

// PortStatus is a port at one moment.
type PortStatus struct {
	PortCounters
	Peer    string            `json:"peer"`
	Up      bool              `json:"up"` // with carrier
	RxBytes uint64            `json:"rx_bytes"`
	Failure FailureMode       `json:"failure,omitempty"` // how the link was made to fail
	Meter   *fabric.PortMeter `json:"meter,omitempty"`   // nil where there is none
}

// NodeStatus is a node at one moment.
type NodeStatus struct {
	Node      string           `json:"node"`
	Layer     string           `json:"layer"`
	Namespace string           `json:"namespace"`
	Error     string           `json:"error,omitempty"` // why the rest is not known: the namespace is gone
	Decap     string           `json:"decap,omitempty"` // DecapIPIP, DecapEBPF, or "" on nodes that do not
	Counters  *fabric.Counters `json:"counters,omitempty"`
	Ports     []PortStatus     `json:"ports"`

	// Labels and Edge count packets with labels in IPv6. They are nil where there are none.
	Labels *fabric.LabelCounters `json:"labels,omitempty"`
	Edge   *fabric.EdgeCounters  `json:"edge,omitempty"` // of switches that forward by labels
}

// PortBytes returns the counters of a node's ports in their order. It leaves out ports
// whose other end is not built. It makes one request to the kernel, which is cheap enough
// for all nodes ten times a second.
func (l *Lab) PortBytes(id topology.NodeID) ([]PortCounters, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.node(id)
	if err != nil {
		return nil, err
	}
	return n.counters()
}

func (n *nodeHandle) counters() ([]PortCounters, error) {
	ports := make([]PortCounters, len(n.ports))
	for i, name := range n.ports {
		ports[i].Port = name
	}
	if n.unlimited {
		return ports, n.countLinks(ports)
	}
	return ports, n.countQueues(ports)
}

func (n *nodeHandle) countQueues(ports []PortCounters) error {
	qdiscs, err := kernel.Dumped(func() ([]netlink.Qdisc, error) { return n.QdiscList(nil) })
	if err != nil {
		return fmt.Errorf("queue counters: %w", err)
	}
	for _, q := range qdiscs {
		a := q.Attrs()
		i, ours := n.index[a.LinkIndex]
		if !ours || a.Parent != netlink.HANDLE_ROOT || a.Statistics == nil {
			continue
		}
		if b := a.Statistics.Basic; b != nil {
			ports[i].TxBytes, ports[i].TxPackets = b.Bytes, uint64(b.Packets)
		}
		if q := a.Statistics.Queue; q != nil {
			ports[i].Drops, ports[i].Backlog = uint64(q.Drops), uint64(q.Backlog)
		}
	}
	return nil
}

// countLinks is for ports without a queue of their own, which count nothing
// but what the device does.
func (n *nodeHandle) countLinks(ports []PortCounters) error {
	links, err := kernel.Links(n.Handle, n.ports)
	if err != nil {
		return err
	}
	for i, link := range links {
		if s := link.Attrs().Statistics; s != nil {
			ports[i].TxBytes, ports[i].TxPackets, ports[i].Drops = s.TxBytes, s.TxPackets, s.TxDropped
		}
	}
	return nil
}

// Status describes every node, in the order of the topology.
func (l *Lab) Status() []NodeStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	failed := l.failedLinks()
	var all []NodeStatus
	for n := range l.Config.nodes() {
		s := NodeStatus{Node: n.Name, Layer: n.Layer.String(), Namespace: l.Namespace(n.ID), Ports: []PortStatus{}}
		if err := l.Do(n.ID, func() error { return l.inspect(n, &s, failed) }); err != nil {
			s.Error = err.Error()
		}
		all = append(all, s)
	}
	return all
}

// failedLinks is how links were made to fail; none where the state cannot be
// read, since the rest of the status is worth having.
func (l *Lab) failedLinks() map[topology.LinkID]FailureMode {
	s, err := readState(l.Config.Name)
	if err != nil || s == nil {
		return nil
	}
	modes, _ := s.Failures.modes(l.Config)
	return modes
}

// inspect runs in the node's namespace.
func (l *Lab) inspect(n topology.Node, s *NodeStatus, failed map[topology.LinkID]FailureMode) error {
	h, err := l.node(n.ID)
	if err != nil {
		return err
	}
	counters, err := h.counters()
	if err != nil {
		return err
	}
	links, err := kernel.Links(h.Handle, h.ports)
	if err != nil {
		return err
	}
	meters, err := h.meters(counters)
	if err != nil {
		return err
	}
	for i, port := range l.Config.ports(n.ID) {
		a := links[i].Attrs()
		p := PortStatus{PortCounters: counters[i], Peer: l.Config.plant().Node(port.Peer).Name, Up: a.OperState == netlink.OperUp, Failure: failed[port.Link]}
		if a.Statistics != nil {
			p.RxBytes = a.Statistics.RxBytes
		}
		if meters != nil && meters[i].RateBits > 0 {
			p.Meter = &meters[i]
		}
		s.Ports = append(s.Ports, p)
	}
	if s.Decap, s.Counters, err = fabric.ReadDecap(h.Handle, h.links); err != nil {
		return err
	}
	if l.Config.SRv6 && n.Layer != topology.LayerHost {
		if s.Edge, err = fabric.ReadEdgeCounters(h.Handle, links); err != nil {
			return err
		}
		if s.Labels, err = fabric.ReadLabelCounters(); err != nil {
			return err
		}
	}
	return nil
}
