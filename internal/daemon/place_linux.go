package daemon

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"weft/internal/capture/tap"
	"weft/internal/eventlog"
	"weft/internal/hostsetup"
	"weft/link"
	"weft/mesh"
	"weft/topology"
)

// place is where the host is in its network: what the configuration says, and
// what was found out where it says auto.
type place struct {
	address netip.Addr
	uplink  hostsetup.Uplink // of several, one that exists
	ways    []way            // all of several uplinks in use, in the order of topology.Topology.Uplinks
	mtu     int              // of the network, bytes
	strict  []string         // devices whose reverse path filter would be in the way
	filter  int              // net.ipv4.conf.all.rp_filter

	address6  netip.Addr           // to which the order of what arrives is restored; the zero Addr if there is none
	gateway6  netip.Addr           // the switch behind the uplink, to IPv6; the zero Addr if the fabric is on the link
	no6       string               // why IPv6 packets are not carried, though the fabric has IPv6
	homeless  bool                 // the host has lost the address
	narrow    map[netip.Prefix]int // racks to which only smaller packets arrive: how large, in bytes
	name      string
	peers     []peer
	joined    []mesh.Peer      // by a directory
	time      func() time.Time // of day, for the peers' keys; nil: the machine's
	memory    int64            // that the control group allows, bytes; 0: no limit
	tap       *tap.Tap         // where who captures sees packets
	log       *eventlog.Log    // for what follows failures
	forwards  bool             // the kernel forwards packets
	forwarded *forwarding      // what connections it forwards; nil: nobody notes them
	short     bool             // super-segments of more than 64 KB have got lost
}

func (c *Config) find(ctx context.Context) (place, error) {
	if c.tunnels() {
		return c.findPeers(ctx)
	}
	p := place{address: c.Address}
	var err error
	if !p.address.IsValid() {
		if p.address, err = hostsetup.FindHost(c.fabric); err != nil {
			return p, c.lines.Errorf("address", "%w", err)
		}
	} else if err := c.hasAddress(); err != nil {
		return p, err
	}
	if err := c.findUplinks(&p); err != nil {
		return p, c.lines.Errorf("uplink", "%w", err)
	}
	if p.filter, err = hostsetup.ReverseFilter(); err != nil {
		return p, err
	}
	p.findStrictUplinks()
	if err := p.findForwarding(); err != nil {
		return p, err
	}
	if c.Gateway.IsValid() {
		p.uplink.Gateway = c.Gateway
	}
	if err := c.size(&p); err != nil {
		return p, err
	}
	if err := c.find6(&p); err != nil { // the rest works without
		c.fabric6, p.no6 = nil, err.Error()
	}
	return p, nil
}

// find6 finds the way of IPv6 packets into the fabric.
func (c *Config) find6(p *place) error {
	t := c.fabric6
	if t == nil || !c.carries6() && !c.receives() {
		return nil
	}
	if p.mtu < minMTU6 {
		return fmt.Errorf("the MTU of %s is %d, and with the outer header IPv6 needs %d", p.uplink.Name, p.mtu, minMTU6)
	}
	if len(p.ways) > 0 {
		return p.findWays6(t)
	}
	u, err := hostsetup.FindUplink(last(t), p.uplink.Name)
	if err != nil {
		return err
	}
	if c.diverted6() != nil && !u.Gateway.IsValid() {
		return fmt.Errorf("%v is on the link of %s: mode gateway needs a router on the way there", last(t), p.uplink.Name)
	}
	if c.six() != nil { // what probes and sends would end, and IPv4 with it
		if err := reach(p.uplink.Name, u.Gateway); err != nil {
			return err
		}
	}
	p.address6, p.gateway6 = c.receives6(), u.Gateway
	return nil
}

// size sets the MTU of the network.
func (c *Config) size(p *place) error {
	p.uplink.MTU = p.leastMTU()
	if p.mtu = c.MTU; p.mtu == 0 {
		p.mtu = p.uplink.MTU
	}
	if p.mtu > p.uplink.MTU {
		return c.lines.Errorf("mtu", "is %d, more than the %d of %s; lower it or raise that", p.mtu, p.uplink.MTU, p.uplink.Name)
	}
	if least := c.minMTU(); p.mtu < least {
		return c.lines.Errorf("mtu", "is %d, of %s; encapsulation: %s needs %d or more", p.mtu, p.uplink.Name, strings.Join(c.Encapsulation, ", "), least)
	}
	return nil
}

// core returns the address of a core switch, or of the last bouncing switch.
func (c *Config) core() netip.Addr { return last(c.fabric) }

// last returns the address of a fabric's last node.
func last(t *topology.Topology) netip.Addr { return t.Node(topology.NodeID(t.NumNodes() - 1)).Addr }

func (c *Config) findPeers(ctx context.Context) (p place, err error) {
	p.address = c.Address
	if p.mtu = c.MTU; p.mtu == 0 {
		p.mtu = link.DefaultMTU
	}
	if p.name = c.UDP.Name; p.name == "" {
		if p.name, err = os.Hostname(); err != nil {
			return p, c.lines.Errorf("udp.name", "%w; say how the peers call this end", err)
		}
	}
	if p.filter, err = hostsetup.ReverseFilter(); err != nil {
		return p, err
	}
	if err := p.findAnyForwarding(deviceSettings); err != nil {
		return p, err
	}
	for i, q := range c.UDP.Peers {
		key := fmt.Sprintf("udp.peers[%d]", i)
		if q.Name == p.name {
			return p, c.lines.Errorf(key+".name", "%s is this end's own name; the two ends need different ones", q.Name)
		}
		at, err := resolve(ctx, q.Endpoint, c.UDP.Listen.Addr())
		if err != nil {
			return p, c.lines.Errorf(key+".endpoint", "%w", err)
		}
		p.peers = append(p.peers, peer{q, at})
	}
	return p, p.findStrict()
}

// findStrict looks for devices by which datagrams come from peers whose own
// addresses are behind the tunnel.
func (p *place) findStrict() error {
	all := slices.Concat(stackPeers(p.peers), p.joined)
	behind := p.behind()
	for i, q := range all {
		if a := q.Endpoint.Addr().Unmap(); !a.Is4() || !behind(a) {
			continue
		}
		u, err := hostsetup.FindUplink(q.Endpoint.Addr().Unmap(), "")
		if err != nil && i >= len(p.peers) { // what somebody registers must not stop the others
			continue
		}
		if err != nil {
			return fmt.Errorf("peer %s: %w", q.Name, err)
		}
		if u.Strict && !slices.Contains(p.strict, u.Name) {
			p.strict = append(p.strict, u.Name)
		}
	}
	return nil
}

// behind returns what reports whether an address is behind a peer.
func (p *place) behind() func(netip.Addr) bool {
	all := make(map[netip.Prefix]bool)
	lengths := make(map[int]bool)
	for _, q := range slices.Concat(stackPeers(p.peers), p.joined) {
		for _, x := range q.Prefixes {
			all[x], lengths[x.Bits()] = true, true
		}
	}
	return func(a netip.Addr) bool {
		for bits := range lengths {
			if x, err := a.Prefix(bits); err == nil && all[x] {
				return true
			}
		}
		return false
	}
}

// resolve finds an address of the family of another.
func resolve(ctx context.Context, endpoint string, like netip.Addr) (netip.AddrPort, error) {
	host, service, err := net.SplitHostPort(endpoint)
	if err != nil {
		return netip.AddrPort{}, err
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return netip.AddrPort{}, err
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	for _, a := range addrs {
		if a.Unmap().Is4() == like.Unmap().Is4() {
			return netip.AddrPortFrom(a.Unmap(), uint16(port)), nil
		}
	}
	return netip.AddrPort{}, fmt.Errorf("%s has no address of the family of udp.listen, %s; listen on the other one", host, like)
}

// planJoined adds the peers of a directory. Only endpoints that are behind a peer themselves
// need a rule.
func (c *Config) planJoined(p place, o *hostsetup.Options) {
	behind := p.behind()
	for _, q := range p.joined {
		o.Tunnel = append(o.Tunnel, q.Prefixes...)
		if behind(q.Endpoint.Addr().Unmap()) && !slices.Contains(o.Endpoints, q.Endpoint) {
			o.Endpoints = append(o.Endpoints, q.Endpoint)
		}
	}
}

// plan is what the kernel must be configured with.
func (c *Config) plan(p place) (hostsetup.Plan, error) {
	o := hostsetup.Options{Address: p.address, FilterAll: p.filter, Strict: p.strict, Sprays: c.policy().Sprays(), Congestion: c.congestion()}
	if c.receives() {
		o.TUN, o.TUNMTU, o.Own, o.TUN6 = c.TUN.Name, p.mtu-c.overhead(), c.TUN.Addresses, p.address6.IsValid()
	}
	if c.tunnels() {
		for _, q := range p.peers {
			o.Tunnel = append(o.Tunnel, q.Prefixes...)
			if !slices.Contains(o.Endpoints, q.endpoint) {
				o.Endpoints = append(o.Endpoints, q.endpoint)
			}
		}
		if o.Peerless = c.joins(); o.Peerless {
			c.planJoined(p, &o)
		}
		return hostsetup.PlanFor(o)
	}
	o.Uplink, o.Gateway = p.uplink.Name, p.uplink.Gateway
	o.Carrier, o.Advertised, o.SIDs = c.carrier(), p.uplink.Advertised, c.toSIDs()
	o.MTU = p.mtu - o.Carrier.Overhead()
	o.Narrow = p.narrow
	o.Fabric = hostsetup.Prefixes(c.fabric)
	if edge, ok := c.fabric.RackAt(p.address); ok {
		o.Rack = c.fabric.RackPrefixesOf(edge, false)
	}
	if t := c.six(); t != nil {
		o.Six = &hostsetup.Six{Address: c.address6(), Gateway: p.gateway6, MTU: p.mtu - overhead6}
		for edge := range t.Racks() {
			o.Six.Fabric = append(o.Six.Fabric, t.RackPrefixesOf(edge, true)...)
		}
		if edge, ok := t.RackAt(o.Six.Address); ok {
			o.Six.Rack = t.RackPrefixesOf(edge, true)
		}
	}
	c.planBehind(p, &o)
	p.divide(&o)
	return hostsetup.PlanFor(o)
}
