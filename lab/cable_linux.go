package lab

import (
	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
	"weft/topology"
	"weft/topology/graph"
)

// Cable is a link of a lab as it was built. Both ends have the same rate and queue.
type Cable struct {
	Link       topology.LinkID
	Name       string
	A, B       topology.NodeID // A is the lower end
	RateMbit   float64         // each direction; 0: nothing limits it
	QueueBytes int             // at each end; 0: nothing limits it
}

// Cables lists the links that the lab has, in the order of their numbers.
func (l *Lab) Cables() (all []Cable) {
	c := &l.Config
	for k := range c.plant().Links() {
		if !c.builds(k.A) || !c.builds(k.B) {
			continue
		}
		cable := Cable{Link: k.ID, Name: c.plant().LinkName(k.ID), A: k.A, B: k.B}
		if !c.Unlimited {
			cable.RateMbit = c.linkRate(k.ID)
			cable.QueueBytes = c.queueBytes(cable.RateMbit)
		}
		all = append(all, cable)
	}
	return all
}

// Tier is a node's height: 0 of hosts. A graph may be higher than a computed fabric.
func (l *Lab) Tier(id topology.NodeID) int {
	if g := l.Config.Graph; g != nil {
		return g.Node(graph.NodeID(id)).Tier
	}
	return int(l.Config.plant().Node(id).Layer)
}

// PortState is a port of a node at one moment.
type PortState struct {
	PortCounters
	Link  topology.LinkID
	Upper bool // the port is at the link's upper end
	Up    bool // with carrier
}

// PortStates is PortBytes that also says whether ports work. It makes two requests to the
// kernel.
func (l *Lab) PortStates(id topology.NodeID) ([]PortState, error) {
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
	links, err := kernel.Links(n.Handle, n.ports)
	if err != nil {
		return nil, err
	}
	all := make([]PortState, len(counters))
	for i, port := range l.Config.ports(id) {
		all[i] = PortState{PortCounters: counters[i], Link: port.Link, Upper: !port.Up, Up: links[i].Attrs().OperState == netlink.OperUp}
	}
	return all, nil
}

// FailedLinks is how links were made to fail, by themselves or with a node; none where that
// cannot be read.
func (l *Lab) FailedLinks() map[topology.LinkID]FailureMode { return l.failedLinks() }

// Current reports whether the lab is still the one that was opened: it is up, and its first
// node has the namespace that it had. Otherwise it was taken down, or built anew, and what is
// read is of something that is no more.
func (l *Lab) Current() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	state, err := readState(l.Config.Name)
	if err != nil || state == nil || !state.Ready {
		return false
	}
	for n := range l.Config.nodes() {
		ns, err := kernel.OpenNamespace(l.Namespace(n.ID))
		if err != nil {
			return false
		}
		id := ns.UniqueId()
		ns.Close()
		if l.first == "" {
			l.first = id
		}
		return l.first == id
	}
	return false
}
