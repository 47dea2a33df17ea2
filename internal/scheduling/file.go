package scheduling

import (
	"net/netip"
	"time"

	"weft/hedera/wire"
	"weft/internal/config"
	"weft/internal/elephant"
	"weft/topology"
)

// File is the section "scheduler" of a configuration file.
type File struct {
	Servers  []netip.AddrPort `yaml:"servers"`
	Share    float64          `yaml:"share"`
	Every    time.Duration    `yaml:"every"`
	LinkMbit float64          `yaml:"link_mbit,auto"` // 0 is auto
}

// Bounds of the section.
const (
	minEvery    = 100 * time.Millisecond
	maxEvery    = time.Minute
	maxLinkMbit = 1e7
)

// On reports whether there are schedulers.
func (f File) On() bool { return len(f.Servers) > 0 }

// Check says what of the section is wrong, in a fabric, which may be nil if it is not known yet.
// keys is the name of the keys that reports are signed with, and signs whether there are any.
func (f File) Check(l config.Lines, t *topology.Topology, keys string, signs bool) error {
	switch {
	case !(f.Share > 0 && f.Share < 1):
		return l.Errorf("scheduler.share", "is %g, must be more than 0 and less than 1, such as 0.1", f.Share)
	case f.Every < minEvery || f.Every > maxEvery:
		return l.Errorf("scheduler.every", "is %v, must be from %v to %v", f.Every, minEvery, maxEvery)
	case !(f.LinkMbit >= 0 && f.LinkMbit <= maxLinkMbit): // and not NaN
		return l.Errorf("scheduler.link_mbit", "is %g, must be more than 0 and at most %g, or auto", f.LinkMbit, float64(maxLinkMbit))
	case len(f.Servers) > wire.MaxServers:
		return l.Errorf("scheduler.servers", "has %d entries, must have at most %d", len(f.Servers), wire.MaxServers)
	}
	for i, s := range f.Servers {
		if s.Port() == 0 || s.Addr().IsUnspecified() || s.Addr().IsMulticast() {
			return l.Errorf("scheduler.servers", "entry %d is %v; give a scheduler's address and port, such as 10.0.0.9:%d", i+1, s, wire.Port)
		}
	}
	switch {
	case !f.On():
	case !signs:
		return l.Errorf("scheduler.servers", "is set without %s, and what is not signed is not believed; give %s the fabric's keys", keys, keys)
	case t != nil && f.LinkMbit == 0 && !rated(t):
		return l.Errorf("scheduler.link_mbit", "is auto, and %s has no rates of hosts' links; give the rate", t)
	}
	return nil
}

func rated(t *topology.Topology) bool { return t.NumHosts() > 0 && t.Rate(t.Ports(0)[0].Link) > 0 }

// Detector returns what an elephant is among the flows of these hosts, by their addresses of IPv4
// and those of IPv6 that belong to them.
func (f File) Detector(t *topology.Topology, hosts func(topology.NodeID) bool) elephant.Config {
	return elephant.Config{Share: f.Share, Max: wire.MaxFlows, Link: func(a netip.Addr) float64 {
		id, ok := t.ByAddr(topology.Addr4(a))
		if !ok || int(id) >= t.NumHosts() || !hosts(id) {
			return 0
		}
		if f.LinkMbit > 0 {
			return f.LinkMbit * 1e6
		}
		return t.Rate(t.Ports(id)[0].Link) * 1e6
	}}
}
