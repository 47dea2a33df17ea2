package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"weft/flowcell"
	"weft/internal/event"
	"weft/internal/hostprog"
	"weft/internal/hostsetup"
	"weft/topology"
)

// behind lists the prefixes behind hosts, this one included, whose addresses are known.
func (c *Config) behind(p place) []hostprog.Behind {
	if !c.Forwarded || c.tunnels() {
		return nil
	}
	list := slices.Clone(c.inGraph)
	for _, b := range c.Behind {
		for _, prefix := range b.Prefixes {
			host := b.Host
			if !host.IsValid() {
				if host = p.address; prefix.Addr().Is6() {
					host = c.address6()
				}
			}
			if host.IsValid() {
				list = append(list, hostprog.Behind{Prefix: prefix, Host: host})
			}
		}
	}
	return list
}

// behindHere lists the prefixes behind this host.
func (c *Config) behindHere(p place) (list []netip.Prefix) {
	for _, b := range c.behind(p) {
		if b.Host == p.address || b.Host == c.address6() {
			list = append(list, b.Prefix)
		}
	}
	return list
}

// hostOf returns what finds the host that an address is of, or is behind.
func (c *Config) hostOf(p place) func(netip.Addr) netip.Addr {
	hosts := make(map[netip.Prefix]netip.Addr)
	var lengths []int
	for _, b := range c.behind(p) {
		hosts[b.Prefix] = b.Host
		if !slices.Contains(lengths, b.Prefix.Bits()) {
			lengths = append(lengths, b.Prefix.Bits())
		}
	}
	slices.SortFunc(lengths, func(a, b int) int { return cmp.Compare(b, a) })
	return func(a netip.Addr) netip.Addr {
		for _, bits := range lengths {
			if x, err := a.Prefix(bits); err == nil && hosts[x].IsValid() {
				return hosts[x]
			}
		}
		return a
	}
}

// findForwarding finds out whether the kernel forwards packets of either family.
func (p *place) findForwarding() error {
	p.forwards = false
	for _, setting := range []string{"ipv4/ip_forward", "ipv6/conf/all/forwarding"} {
		on, err := os.ReadFile("/proc/sys/net/" + setting)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("does the kernel forward packets: %w", err)
		}
		p.forwards = p.forwards || strings.TrimSpace(string(on)) == "1"
	}
	return nil
}

// planBehind has what this host's programs send to what is behind other hosts go by the fabric's
// routes. What is behind this one, or one of its rack, the kernel's own routes lead to.
func (c *Config) planBehind(p place, o *hostsetup.Options) {
	add := func(t *topology.Topology, self netip.Addr, fabric, rack *[]netip.Prefix, b hostprog.Behind) {
		mine, _ := t.RackAt(self)
		edge, ok := t.RackAt(b.Host)
		to := fabric
		if !ok || edge == mine {
			to = rack
		}
		if !slices.Contains(*to, b.Prefix) {
			*to = append(slices.Clip(*to), b.Prefix)
		}
	}
	for _, b := range c.behind(p) {
		switch {
		case b.Prefix.Addr().Is4():
			add(c.fabric, p.address, &o.Fabric, &o.Rack, b)
		case o.Six != nil:
			add(c.six(), o.Six.Address, &o.Six.Fabric, &o.Six.Rack, b)
		}
	}
}

// cutsForwarded reports whether super-segments that this host forwards are to be cut into packets:
// the containers' TCP makes them as long as it can, whatever the uplink takes.
func (c *Config) cutsForwarded(p place) bool {
	u := c.uplinkPolicy()
	return c.Forwarded && p.forwards && len(p.ways) == 0 && u.Sprays() && u.Unit.Kind == flowcell.UnitPacket
}

// cutForwarded begins or ends to cut what is forwarded, after somebody has had the kernel forward
// packets, as Docker does when it starts.
func (d *daemon) cutForwarded() error {
	c := d.config
	if d.spray == nil || d.cuts == c.cutsForwarded(d.place) {
		return nil
	}
	again := &change{daemon: d, old: c, next: c}
	again.replaceProgram(d.topology)
	if err := again.carryOut(); err != nil {
		return err
	}
	d.log.Info(event.Configured, fmt.Sprintf("the kernel forwards packets: %t; what it forwards is cut into packets: %t", d.place.forwards, c.cutsForwarded(d.place)))
	return nil
}

// forwarding is what this host forwards, and to which hosts. A nil one says nothing.
type forwarding struct {
	table *hostprog.Forwarded // nil in tests
	host  atomic.Pointer[func(netip.Addr) netip.Addr]
}

// noteForwarded has the connections noted that are forwarded, as long as the daemon runs.
func (d *daemon) noteForwarded(c *Config, p place) (*forwarding, error) {
	if c.tunnels() || !c.Forwarded {
		return nil, nil
	}
	if d.noted == nil {
		table, err := d.kernel.note(d.memory)
		if err != nil {
			return nil, err
		}
		d.noted = &forwarding{table: table}
	}
	d.noted.find(c, p)
	return d.noted, nil
}

// find takes over what a configuration says of what is behind hosts.
func (f *forwarding) find(c *Config, p place) {
	if f != nil {
		host := c.hostOf(p)
		f.host.Store(&host)
	}
}

// hostOf returns the host that an address is behind, or the address.
func (f *forwarding) hostOf(a netip.Addr) netip.Addr {
	if f == nil {
		return a
	}
	return (*f.host.Load())(a)
}

// of is the table; nil if there is none.
func (f *forwarding) of() *hostprog.Forwarded {
	if f == nil {
		return nil
	}
	return f.table
}

// to returns what tells to which hosts of a family this one forwards packets; nil if nobody notes it.
func (f *forwarding) to(six bool) func() []netip.Addr {
	if f.of() == nil {
		return nil
	}
	return func() (hosts []netip.Addr) {
		list, err := f.table.Remotes()
		if err != nil {
			return nil // paths are found out about by what the host itself sends
		}
		for _, a := range list {
			if a.Is6() == six {
				hosts = append(hosts, f.hostOf(a))
			}
		}
		slices.SortFunc(hosts, netip.Addr.Compare)
		return slices.Compact(hosts)
	}
}

func (f *forwarding) close() error {
	if f.table == nil {
		return nil
	}
	return f.table.Close()
}

// maxBehindStatus bounds the prefixes that a status lists.
const maxBehindStatus = 1000

// behindStatus lists what is behind hosts, this one's first.
func (c *Config) behindStatus(p place) (list []BehindStatus, unnamed int) {
	all := c.behind(p)
	slices.SortStableFunc(all, func(a, b hostprog.Behind) int {
		own := func(x hostprog.Behind) int {
			if x.Host == p.address || x.Host == c.address6() {
				return 0
			}
			return 1
		}
		return own(a) - own(b)
	})
	for i, b := range all {
		if i == maxBehindStatus {
			return list, len(all) - i
		}
		s := BehindStatus{Prefix: b.Prefix.String(), Host: b.Host.String(), Own: b.Host == p.address || b.Host == c.address6()}
		if t := c.fabricOf(b.Host); t != nil {
			if edge, ok := t.RackAt(b.Host); ok {
				s.Rack = t.Node(edge).Name
			}
		}
		list = append(list, s)
	}
	return list, 0
}
