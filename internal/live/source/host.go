package source

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"weft/internal/kernel"
	"weft/internal/live"
	"weft/internal/overview"
	"weft/topology"
)

// Host is a live.Source: a fabric as one weft host sees it. Its links show what this host sends
// by them, and the link of its uplink what comes in, too; what other hosts send is not known.
type Host struct {
	ask   func(context.Context) ([]byte, error)
	conns func() ([]kernel.Connection, error)
	ports func() (map[string]PortCount, error)
	here  func(netip.Addr) bool // whether an address is of the network namespace that conns and ports are of; nil: it is

	mu       sync.Mutex
	fabric   *live.Fabric
	topology *topology.Topology // nil: the fabric is data, or not known
	shape    string             // what the fabric was made of
	last     *overview.Host
	at       time.Time
}

// PortCount is what a device of this host has counted.
type PortCount struct {
	Sent, Received             uint64 // bytes
	SentPackets, SentDrops     uint64
	ReceivedPackets, Forgotten uint64 // Forgotten were received and dropped
}

// NewHost returns the source of the weft host that ask asks for its status. conns lists the
// connections, and ports the devices of its network namespace; either may be nil.
func NewHost(ask func(context.Context) ([]byte, error), conns func() ([]kernel.Connection, error), ports func() (map[string]PortCount, error)) *Host {
	return &Host{ask: ask, conns: conns, ports: ports}
}

// LocalHost is NewHost with the connections and devices of the calling thread's network namespace,
// if the weft host is of that.
func LocalHost(ask func(context.Context) ([]byte, error)) *Host {
	h := NewHost(ask, kernel.Connections, Ports)
	h.here = isHere
	return h
}

// isHere reports whether a device of this network namespace has an address.
func isHere(a netip.Addr) bool {
	all, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(all, func(at net.Addr) bool {
		p, err := netip.ParsePrefix(at.String())
		return err == nil && p.Addr() == a
	})
}

// Close does nothing.
func (h *Host) Close() error { return nil }

// Fabric asks for the status, of which the next Sample is, too.
func (h *Host) Fabric(ctx context.Context) (*live.Fabric, error) {
	text, err := h.ask(ctx)
	if err != nil {
		return nil, err
	}
	s, err := overview.ParseHost(text)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last, h.at = &s, time.Now()
	if shape := shapeOf(&s); h.fabric == nil || shape != h.shape {
		version := 1
		if h.fabric != nil {
			version = h.fabric.Version + 1
		}
		h.topology, _ = topology.Parse(s.Topology)
		fabric := computedFabric(h.topology, &s)
		if h.topology == nil {
			fabric = starFabric(&s)
		}
		fabric.Version, fabric.Kind, fabric.Name = version, live.KindHost, s.Address
		fabric.About, _, _ = strings.Cut(s.View(nil, 0).About, ", up ") // the fabric does not age
		h.fabric, h.shape = fabric, shape
	}
	return h.fabric, nil
}

// shapeOf is the same as long as the fabric is.
func shapeOf(s *overview.Host) string {
	names := []string{s.Topology, s.Address}
	for _, w := range s.Ways() {
		names = append(names, w.Bounce)
	}
	return strings.Join(names, " ")
}

// computedFabric is all of a topology whose parameters are known.
func computedFabric(t *topology.Topology, s *overview.Host) *live.Fabric {
	f := &live.Fabric{}
	if t == nil {
		return f
	}
	for n := range t.Nodes() {
		f.Nodes = append(f.Nodes, live.Node{Name: n.Name, Tier: int(n.Layer), Address: n.Addr.String(), Self: n.Addr.String() == s.Address})
	}
	for l := range t.Links() {
		f.Links = append(f.Links, live.Link{Name: t.LinkName(l.ID), A: int(l.A), B: int(l.B), Rate: t.Rate(l.ID) * 1e6})
	}
	return f
}

// starFabric is the host, its bouncing switches, and the racks in use behind them, where no more
// is known of the fabric.
func starFabric(s *overview.Host) *live.Fabric {
	f := &live.Fabric{}
	self := s.Address
	if self == "" {
		self = "this host"
	}
	f.Nodes = append(f.Nodes, live.Node{Name: self, Address: s.Address, Self: true})
	var racks []int
	if s.Reach != nil {
		for _, r := range s.Reach.InUse {
			if f.Find(r.Rack) < 0 {
				racks = append(racks, len(f.Nodes))
				f.Nodes = append(f.Nodes, live.Node{Name: r.Rack})
			}
		}
	}
	for _, w := range s.Ways() {
		if f.Find(w.Bounce) >= 0 {
			continue
		}
		b := len(f.Nodes)
		f.Nodes = append(f.Nodes, live.Node{Name: w.Bounce, Tier: 1})
		for _, low := range append([]int{0}, racks...) {
			f.Links = append(f.Links, live.Link{Name: f.Nodes[low].Name + "-" + w.Bounce, A: low, B: b})
		}
	}
	return f
}

// Sample is of the status that Fabric has asked for.
func (h *Host) Sample(context.Context) (live.Sample, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fabric == nil {
		return live.Sample{}, fmt.Errorf("the status has not been asked for")
	}
	s := h.last
	out := live.Sample{At: h.at, Links: make([]live.LinkSample, len(h.fabric.Links))}
	for i := range out.Links {
		out.Links[i].State = live.Working
	}
	here := true
	if a, err := netip.ParseAddr(s.Address); err == nil && h.here != nil && !h.here(a) {
		here = false
		out.Trouble = fmt.Sprintf("no connections and no counters of devices: %v is of another network namespace; run weft there (ip netns exec, weft lab exec)", a)
	}
	h.addOwn(s, here, &out)
	h.addFailures(s, &out)
	out.Ways = waysOf(h.name(), s)
	out.Hosts = []live.Host{hostOf(h.name(), s)}
	out.Suspects = suspectsOf(h.name(), s)
	if h.conns != nil && here {
		all, err := h.conns()
		if err != nil {
			out.Trouble = "connections: " + err.Error()
		}
		out.Conns = connSamples(h.name(), all, h.nameOf)
	}
	return out, nil
}

// name is the host's in the fabric.
func (h *Host) name() string {
	for _, n := range h.fabric.Nodes {
		if n.Self {
			return n.Name
		}
	}
	return h.fabric.Name
}

// nameOf finds the host with an address.
func (h *Host) nameOf(a netip.Addr) string {
	if h.topology == nil {
		return ""
	}
	if host, _, ok := h.topology.HostAt(a); ok {
		return h.topology.HostName(host)
	}
	return ""
}

// addOwn adds what this host has sent by each link of its ways up, and what its device counts if
// that is here.
func (h *Host) addOwn(s *overview.Host, here bool, out *live.Sample) {
	self := slices.IndexFunc(h.fabric.Nodes, func(n live.Node) bool { return n.Self })
	if self < 0 {
		return
	}
	for _, w := range s.Ways() {
		for _, l := range h.wayUp(self, h.fabric.Find(w.Bounce)) {
			c := &out.Links[l].Up
			c.Known, c.Bytes, c.Packets = true, c.Bytes+w.Bytes, c.Packets+w.Packets
		}
	}
	if h.ports == nil || !here {
		return
	}
	devices, err := h.ports()
	if err != nil {
		out.Trouble = err.Error()
		return
	}
	port, ok := devices[s.Uplink]
	first := slices.IndexFunc(h.fabric.Links, func(l live.Link) bool { return l.A == self })
	if ok && first >= 0 && h.topology != nil && len(s.Uplinks) < 2 {
		out.Links[first].Up = live.Counters{Known: true, Bytes: port.Sent, Packets: port.SentPackets, Drops: port.SentDrops}
		out.Links[first].Down = live.Counters{Known: true, Bytes: port.Received, Packets: port.ReceivedPackets, Drops: port.Forgotten}
	}
}

// wayUp returns the links of the way from a node up to another one; the first way, if there are
// several.
func (h *Host) wayUp(from, to int) []int {
	if to < 0 {
		return nil
	}
	for _, p := range h.fabric.Paths(from, to) {
		if p.Bounce == to {
			return p.Links
		}
	}
	return nil
}

func (h *Host) addFailures(s *overview.Host, out *live.Sample) {
	if s.Failures == nil {
		return
	}
	for _, name := range s.Failures.Down {
		if i := h.fabric.FindLink(name); i >= 0 {
			out.Links[i].State = live.Broken
		}
	}
}

// Paths returns the paths between two nodes.
func (h *Host) Paths(from, to int) []live.Path {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fabric == nil {
		return []live.Path{}
	}
	return pathsOf(h.topology, h.fabric, from, to)
}
