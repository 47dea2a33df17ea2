package switchconf

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"weft/encap"
	"weft/topology/graph"
)

// SONiCPlan is what a SONiC switch must be configured with. Names are those of SONiC's YANG
// models (sonic-net/sonic-buildimage, src/sonic-yang-models), for its bgpcfgd, the daemon that
// makes FRR's configuration of templates; it alone takes static SIDs.
type SONiCPlan struct {
	ConfigDB ConfigDB `json:"config_db"`
	// VTYSH are the lines that CONFIG_DB has no words for, in FRR's language.
	VTYSH []string `json:"vtysh"`
}

// ConfigDB is entries by table and key. A value is a string or, of a leaf-list, several.
type ConfigDB map[string]map[string]map[string]any

const (
	loopback = "Loopback0" // whose addresses SONiC announces
	dscpMap  = "AZURE"     // SONiC's map of DSCP values, which its ports have
	probeTC  = "6"         // the traffic class of network control in SONiC's own map
	// anyAS is what BGP_PEER_RANGE wants where any AS is meant.
	anyAS = "4200000001"
	// unnumbered is the group of neighbours by port that SONiC's templates make.
	unnumbered = "PEER_UNNUMBERED"
)

// SONiC returns a switch's configuration for SONiC: addresses, BGP over its links without
// addresses of their own, decapsulation of IP-in-IP and of SRv6, the class of probes, and at an
// edge switch sessions with hosts. As FRR's, it leaves out what the fabric has besides, and wants
// AS numbers and names of ports, SONiC's own (Ethernet0).
func SONiC(g *graph.Graph, id graph.NodeID) (p SONiCPlan, err error) {
	n := g.Node(id)
	if n.Tier == 0 {
		return p, fmt.Errorf("%s is a host; name a switch", n.Name)
	}
	if n.AS == 0 {
		return p, fmt.Errorf("%s has no AS; give it one, as: 65001", n.Name)
	}
	up, err := neighbors(g, id, g.Up(id))
	if err != nil {
		return p, err
	}
	down, err := neighbors(g, id, g.Down(id))
	if err != nil {
		return p, err
	}
	p.ConfigDB = make(ConfigDB)
	p.ConfigDB.set("DEVICE_METADATA", "localhost", map[string]any{"hostname": n.Name, "bgp_asn": decimal(n.AS),
		"bgp_adv_lo_prefix_as_128": "true"}) // SONiC would announce the /64 around it
	if _, ok := first(n.Addresses, netip.Addr.Is4); !ok {
		p.ConfigDB.set("DEVICE_METADATA", "localhost", map[string]any{"bgp_router_id": routerID(n).String()})
	}
	if len(n.Addresses) > 0 {
		p.ConfigDB.set("LOOPBACK_INTERFACE", loopback, nil)
	}
	for _, a := range n.Addresses {
		p.ConfigDB.set("LOOPBACK_INTERFACE", fmt.Sprintf("%s|%v", loopback, netip.PrefixFrom(a, a.BitLen())), nil)
	}
	for _, nb := range append(slices.Clone(up), down...) {
		p.ConfigDB.set("INTERFACE", nb.port, map[string]any{"ipv6_use_link_local_only": "enable"})
		p.ConfigDB.set("BGP_NEIGHBOR", nb.port, map[string]any{"asn": decimal(nb.as), "name": nb.name, "keepalive": "3", "holdtime": "9", "admin_status": "up"})
	}
	p.ConfigDB.decapsulate(n)
	p.ConfigDB.set("DSCP_TO_TC_MAP", dscpMap, map[string]any{strconv.Itoa(encap.ProbeTOS >> 2): probeTC})
	if n.Tier == 1 && len(n.Prefixes) > 0 {
		p.ConfigDB.set("BGP_PEER_RANGE", hosts, peerRange(n))
	}
	p.VTYSH = sonicVTYSH(n, up, down)
	return p, nil
}

// decapsulate has a switch take off outer headers, by IP-in-IP only where packets bounce.
// SONiC does so at Loopback0 by itself (ipinip.json of its dockers), in IPv6, too, of which the
// model of TUNNEL takes no end without a source. Where that is so, TUNNEL changes nothing.
func (db ConfigDB) decapsulate(n graph.Node) {
	if a, ok := first(n.Addresses, netip.Addr.Is4); ok && n.Tier > 1 {
		db.set("TUNNEL", "WEFT", map[string]any{"tunnel_type": "IPINIP", "dst_ip": a.String(),
			"dscp_mode": "uniform", "ecn_mode": "copy_from_outer", "ttl_mode": "pipe"})
	}
	s := n.SIDs
	if s.None() {
		return
	}
	db.set("SRV6_MY_LOCATORS", locator, map[string]any{"prefix": s.Node.Addr().String(), "block_len": "32", "node_len": "16", "func_len": "16"})
	db.set("SRV6_MY_SIDS", fmt.Sprintf("%s|%v", locator, s.Node), map[string]any{"action": "uN", "decap_dscp_mode": "pipe"})
	for _, sid := range []netip.Prefix{s.Decap4, s.Decap6} {
		db.set("SRV6_MY_SIDS", fmt.Sprintf("%s|%v", locator, sid), map[string]any{"action": "uDT46", "decap_vrf": "default", "decap_dscp_mode": "pipe"})
	}
}

// set adds fields to an entry, which may have none.
func (db ConfigDB) set(table, key string, fields map[string]any) {
	if db[table] == nil {
		db[table] = make(map[string]map[string]any)
	}
	if db[table][key] == nil {
		db[table][key] = make(map[string]any)
	}
	for name, value := range fields {
		db[table][key][name] = value
	}
}

// peerRange has an edge switch wait for hosts of its racks.
func peerRange(n graph.Node) map[string]any {
	ranges := make([]string, len(n.Prefixes))
	for i, p := range n.Prefixes {
		ranges[i] = p.String()
	}
	fields := map[string]any{"name": hosts, "ip_range": ranges, "peer_asn": anyAS}
	if a, ok := first(n.Addresses, netip.Addr.Is4); ok {
		fields["src_address"] = a.String()
	}
	return fields
}

// sonicVTYSH are the lines that SONiC's bgpd takes besides what its templates make.
func sonicVTYSH(n graph.Node, up, down []neighbor) (lines []string) {
	line := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	line("router bgp %d", n.AS)
	line(" bgp bestpath as-path multipath-relax")
	line(" no bgp network import-check")
	if len(up)+len(down) > 0 {
		line(" neighbor %s advertisement-interval 0", unnumbered)
	}
	edge := n.Tier == 1 && len(n.Prefixes) > 0
	if edge {
		line(" neighbor %s remote-as external", hosts)
		line(" no neighbor %s update-source", hosts)
		line(" neighbor %s advertisement-interval 0", hosts)
	}
	for _, f := range []string{"ipv4", "ipv6"} {
		line(" address-family %s unicast", f)
		announced := false
		for _, a := range n.Addresses {
			if isOf(a, f) {
				if announced { // of each family SONiC announces one
					line("  network %v", netip.PrefixFrom(a, a.BitLen()))
				}
				announced = true
			}
		}
		for _, p := range n.Prefixes {
			if isOf(p.Addr(), f) {
				line("  network %v", p)
			}
		}
		if f == "ipv6" && !n.SIDs.None() {
			line("  network %v", n.SIDs.Node)
		}
		for _, p := range down {
			line("  neighbor %s addpath-tx-all-paths", p.port)
		}
		if edge {
			line("  neighbor %s activate", hosts)
			line("  neighbor %s addpath-tx-all-paths", hosts)
			line("  neighbor %s route-map %s-none in", hosts, hosts)
			line("  no neighbor %s route-map TO_BGP_SPEAKER out", hosts)
		}
		line("  maximum-paths 64")
		line(" exit-address-family")
	}
	line("exit")
	if edge {
		line("route-map %s-none deny 10", hosts)
		line("exit")
	}
	return lines
}

func decimal(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
