package hostsetup

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"weft/encap"
	"weft/internal/kernel"
)

// The numbers that a host's set-up uses, so that administrators can find it and
// put their own rules before or behind it. Rules come in this order.
const (
	RuleTunnel = 5738 // a tunnel's own datagrams: go on behind the rest, at HostRuleEnd
	RuleOut    = 5739 // what weft has written to the TUN: TableOut
	RuleIn     = 5740 // what programs send: TableIn
	RuleDirect = 5741 // what programs send past the TUN: TableOut
	RuleEnd    = 5742 // does nothing; where RuleTunnel leads

	TableIn  = 5740 // routes into the TUN
	TableOut = 5741 // routes out of the uplink
)

// dummyAddress (RFC 7600 §4.8) numbers a TUN that needs any address at all.
var dummyAddress = netip.MustParsePrefix("192.0.0.8/32")

// Options say how a host sends into the fabric.
type Options struct {
	Address netip.Addr // the source address of what programs send; the zero Addr leaves it to the kernel
	Uplink  string     // the device that leads into the fabric
	Gateway netip.Addr // the switch behind it; the zero Addr when the fabric is on the link
	Others  []Way      // further uplinks, which are up; nil: the host has one
	MTU     int        // largest inner packet, bytes: the fabric's MTU less Carrier's Overhead

	// Carrier is the outer header's kind. With SRv6 and a TUN the kernel forwards the
	// packets with labels that weft writes to the TUN, which needs Gateway and Address.
	Carrier    encap.Carrier
	Advertised bool // the uplink takes router advertisements, and is to go on doing so
	// SIDs says that Carrier leads to SIDs of a graph. What reads the TUN writes no such
	// packets to it.
	SIDs bool

	Fabric []netip.Prefix       // destinations whose packets the uplink's program encapsulates
	Narrow map[netip.Prefix]int // of those, where only smaller packets arrive: the largest, bytes
	Rack   []netip.Prefix       // of those, what is reached without: the host's own rack

	Six *Six // nil: IPv6 goes as the kernel has it

	Congestion Congestion // of TCP to Fabric, Six and Tunnel

	// Sprays says that packets of one connection of the host's own TCP take different paths,
	// whether or not somebody puts them back in order.
	Sprays bool

	TUN    string         // the device that programs' packets are routed into; "" for none
	TUNMTU int            // the TUN's own MTU in bytes; 0: nobody watches it
	TUN6   bool           // the kernel must take IPv6 packets from the TUN, too, which the default for devices may forbid
	Own    []netip.Prefix // addresses that the TUN has besides
	Tunnel []netip.Prefix // destinations of which every packet goes into the TUN, and TCP to Fabric besides

	Peerless  bool             // Tunnel may be empty: its peers come later
	Endpoints []netip.AddrPort // where the tunnel's own datagrams go, which must not go into the TUN

	// Strict are devices with a strict reverse path filter by which packets come in from
	// addresses that a rule leads into the TUN. The uplink is one if a rule of the
	// administrator's looks at ports, since the filter then looks at the protocol, too.
	// FilterAll is net.ipv4.conf.all.rp_filter.
	Strict    []string
	FilterAll int
}

const (
	protoTCP = 6
	protoUDP = 17
)

// PlanFor computes the configuration. It names the first option that is wrong.
func PlanFor(o Options) (Plan, error) {
	if err := o.check(); err != nil {
		return Plan{}, err
	}
	p := Plan{TUN: o.TUN, TUNMTU: o.TUNMTU, Own: o.Own, Uplink: o.Uplink, Sysctls: []kernel.Sysctl{}, Routes: []Route{}, Rules: []Rule{}, Divert: []Rule{}}
	p.filters(o)
	p.several(o)
	if len(o.Fabric) > 0 {
		p.fabric(o)
		if o.forwardsLabels() {
			p.labels(o)
		}
	}
	if o.Six != nil {
		p.six(o)
	}
	if len(o.Tunnel) > 0 {
		p.tunnel(o)
	}
	if o.Congestion.For == nil {
		o.Congestion.For = slices.Concat(o.Fabric, o.Tunnel)
		if o.Six != nil {
			o.Congestion.For = append(o.Congestion.For, o.Six.Fabric...)
		}
	}
	p.congestion(o.Congestion)
	return p, nil
}

func (o Options) check() error {
	switch {
	case len(o.Fabric) == 0 && len(o.Tunnel) == 0 && !o.Peerless:
		return fmt.Errorf("host plan: neither Fabric nor Tunnel has a destination; give one of them")
	case len(o.Fabric) > 0 && o.Uplink == "":
		return fmt.Errorf("host plan: Uplink is missing; name the device that leads into the fabric")
	case len(o.Tunnel) > 0 && o.TUN == "":
		return fmt.Errorf("host plan: TUN is missing; the tunnel needs one")
	case len(o.Fabric) > 0 && o.MTU < o.minMTU():
		return fmt.Errorf("host plan: MTU is %d bytes, must be %d or more by %v", o.MTU, o.minMTU(), o.Carrier)
	case o.Six != nil && (len(o.Six.Fabric) == 0 || o.Uplink == "" || o.Six.MTU < kernel.MinMTU6):
		return fmt.Errorf("host plan: Six has %d prefixes of the fabric and an MTU of %d bytes, by %q; it needs both, at least %d, and Uplink", len(o.Six.Fabric), o.Six.MTU, o.Uplink, kernel.MinMTU6)
	case o.TUN6 && o.TUNMTU != 0 && o.TUNMTU < kernel.MinMTU6:
		return fmt.Errorf("host plan: TUN6 needs an MTU of %d bytes, and TUNMTU is %d", kernel.MinMTU6, o.TUNMTU)
	case o.Carrier != encap.CarrierIPIP && o.Carrier != encap.CarrierSRv6:
		return fmt.Errorf("host plan: Carrier is %v, which hosts do not write; use ipip or srv6", o.Carrier)
	case o.forwardsLabels() && !(o.Gateway.Is4() && o.Address.Is4()):
		return fmt.Errorf("host plan: Gateway is %v and Address %v; labels in IPv6 need the switch's IPv4 address and the host's", o.Gateway, o.Address)
	}
	for _, name := range slices.Concat([]string{o.TUN, o.Uplink}, o.Strict, names(o.Others)) {
		if err := checkDevice(name); err != nil {
			return fmt.Errorf("host plan: %w", err)
		}
	}
	for _, p := range o.Tunnel {
		if p != p.Masked() {
			return fmt.Errorf("host plan: prefix %s has bits behind its length; write %s", p, p.Masked())
		}
	}
	return nil
}

// checkDevice refuses what the kernel refuses: names are pasted into paths.
func checkDevice(name string) error {
	if len(name) > kernel.MaxDeviceName || strings.ContainsAny(name, "/ \t\n") || name == "." || name == ".." {
		return fmt.Errorf("device %q: a name of at most %d bytes without slashes and blanks is needed", name, kernel.MaxDeviceName)
	}
	return nil
}

const (
	// minRTTWindow is for how long TCP keeps its least round trip, in seconds.
	minRTTWindow = "net.ipv4.tcp_min_rtt_wlen"
	// tsoRTT is the logarithm of the least round trip, in microseconds, up to which TCP makes
	// its super-segments as long as it can; Linux 5.18.
	tsoRTT = "net.ipv4.tcp_tso_rtt_log"
)

// confKey is a setting of a device. A dot in its name (eth0.100) is written as
// a slash, as sysctl(8) has it.
func confKey(device, name string) string {
	return "net.ipv4.conf." + strings.ReplaceAll(device, ".", "/") + "." + name
}

// filters lets packets in by a device through which the way back does not lead:
// by the TUN, packets of this host's own address on their way out and everybody's
// on their way in.
func (p *Plan) filters(o Options) {
	for _, device := range o.Strict {
		p.Sysctls = append(p.Sysctls, kernel.Sysctl{Key: confKey(device, "rp_filter"), Value: "2"})
	}
	if o.Sprays {
		// Loss detection waits for packets that may have been overtaken, at first for a
		// quarter of the least round trip (RFC 8985 §6.2). By default that is the least of
		// five minutes: a handshake's, which met no queue. Paths that differ by some
		// packets' queueing then look like losses. Where receivers restore the order, so do
		// segments behind a loss that they have held. 0 means the latest round trip.
		//
		// Beyond half a millisecond TCP takes the least round trip for that of a distant host, to
		// which it sends short super-segments. It is not that of a distant host here. 2^16
		// microseconds are 66 ms.
		p.Sysctls = append(p.Sysctls, kernel.Sysctl{Key: minRTTWindow, Value: "0"}, kernel.Sysctl{Key: tsoRTT, Value: "16", Optional: true})
	}
	if o.TUN == "" {
		return
	}
	filter := "0"
	if o.FilterAll != 0 {
		// The device's own 0 would not count. Loose is as good, but fails on
		// devices without an address.
		filter, p.Address = "2", dummyAddress
	}
	p.Sysctls = append(p.Sysctls, kernel.Sysctl{Key: confKey(o.TUN, "rp_filter"), Value: filter})
	if len(o.Fabric) > 0 {
		p.Sysctls = append(p.Sysctls,
			kernel.Sysctl{Key: confKey(o.TUN, "accept_local"), Value: "1"},
			kernel.Sysctl{Key: confKey(o.TUN, "forwarding"), Value: "1"})
	}
	if o.TUN6 {
		p.Sysctls = append(p.Sysctls, kernel.Sysctl{Key: confKey6(o.TUN, "disable_ipv6"), Value: "0"})
	}
}

// fabric leads packets that the uplink encapsulates there, and TCP through the
// TUN first. If no prefix of a table fits, the search goes on as if the rules did
// not exist.
func (p *Plan) fabric(o Options) {
	tables := []int{TableOut}
	if o.TUN != "" {
		tables = []int{TableIn, TableOut}
		p.Rules = append(p.Rules, Rule{Priority: RuleOut, Iif: o.TUN, Table: TableOut})
		p.Divert = append(p.Divert, Rule{Priority: RuleIn, Iif: "lo", Protocol: protoTCP, Table: TableIn})
	}
	p.Rules = append(p.Rules, Rule{Priority: RuleDirect, Iif: "lo", Table: TableOut})
	for _, table := range tables {
		r := Route{Table: table, Device: o.Uplink, Gateway: o.Gateway, Src: o.Address, MTU: o.MTU}
		for _, w := range o.Others {
			r.Also = append(r.Also, Hop{w.Device, w.Gateway})
		}
		if table == TableIn {
			r.Device, r.Gateway, r.Also = o.TUN, netip.Addr{}, nil
		}
		p.lead(r, o.Fabric, o.Rack, o.Narrow)
	}
}

// lead adds routes to all prefixes but those of the host's own rack, and to the narrow ones
// inside them. A prefix that is narrow itself has the smaller MTU.
func (p *Plan) lead(r Route, fabric, rack []netip.Prefix, narrow map[netip.Prefix]int) {
	usual := r.MTU
	for _, prefix := range fabric {
		if slices.Contains(rack, prefix) {
			continue
		}
		r.Prefix, r.MTU = prefix, usual
		if mtu, ok := narrow[prefix]; ok {
			r.MTU = mtu
		}
		p.Routes = append(p.Routes, r)
		for _, inside := range slices.SortedFunc(maps.Keys(narrow), netip.Prefix.Compare) {
			if prefix.Overlaps(inside) && inside.Bits() > prefix.Bits() {
				r.Prefix, r.MTU = inside, narrow[inside]
				p.Routes = append(p.Routes, r)
			}
		}
	}
	for _, own := range rack {
		p.Routes = append(p.Routes, Route{Table: r.Table, Prefix: own})
	}
}

// six has the kernel's IPv6 packets leave room for the outer header, and leads TCP into the
// TUN first.
func (p *Plan) six(o Options) {
	s := o.Six
	p.Rules = append(p.Rules, Rule{Priority: RuleDirect, IPv6: true, Iif: "lo", Table: TableOut})
	if o.TUN6 {
		p.Divert = append(p.Divert, Rule{Priority: RuleIn, IPv6: true, Iif: "lo", Protocol: protoTCP, Table: TableIn})
		p.lead(Route{Table: TableIn, Device: o.TUN, Src: s.Address, MTU: s.MTU}, s.Fabric, s.Rack, o.Narrow)
	}
	r := Route{Table: TableOut, Device: o.Uplink, Gateway: s.Gateway, Src: s.Address, MTU: s.MTU}
	for _, w := range o.Others {
		if w.Gateway6.IsValid() == s.Gateway.IsValid() { // the kernel takes no route with only some
			r.Also = append(r.Also, Hop{w.Device, w.Gateway6})
		}
	}
	p.lead(r, s.Fabric, s.Rack, o.Narrow)
}

// tunnel leads everything for the peers into the TUN but the tunnel's own
// datagrams, which may be for an address that a peer's prefix contains.
func (p *Plan) tunnel(o Options) {
	var families [2]bool // IPv4, IPv6
	for _, prefix := range o.Tunnel {
		r := Route{Table: TableIn, Prefix: prefix, Device: o.TUN}
		if o.Address.IsValid() && o.Address.Is4() == prefix.Addr().Is4() {
			r.Src = o.Address
		}
		p.Routes = append(p.Routes, r)
		families[family(prefix.Addr())] = true
	}
	var ends [2]bool
	for _, e := range o.Endpoints {
		addr := e.Addr().Unmap()
		if v := family(addr); families[v] && !ends[v] {
			ends[v] = true
			p.Rules = append(p.Rules, Rule{Priority: RuleEnd, IPv6: v == 1})
		}
		if families[family(addr)] {
			p.Rules = append(p.Rules, Rule{Priority: RuleTunnel, IPv6: family(addr) == 1, Iif: "lo",
				To: netip.PrefixFrom(addr, addr.BitLen()), Protocol: protoUDP, Port: e.Port(), Goto: RuleEnd})
		}
	}
	for v, used := range families {
		if used {
			p.Divert = append(p.Divert, Rule{Priority: RuleIn, IPv6: v == 1, Iif: "lo", Table: TableIn})
		}
	}
}

func family(a netip.Addr) int {
	if a.Is4() {
		return 0
	}
	return 1
}
