package hostsetup

import (
	"net/netip"

	"weft/internal/kernel"
)

// Six says how a host sends IPv6 into the fabric, which the uplink's program encapsulates,
// or what reads the TUN. That writes nothing back to it, so Linux need not forward IPv6. The
// fields are those of Options; TUN and Narrow are both families'.
type Six struct {
	Address, Gateway netip.Addr
	MTU              int // bytes
	Fabric, Rack     []netip.Prefix
}

// Plan is the configuration of a host with which its programs' packets pass weft,
// unknown to the programs.
type Plan struct {
	TUN     string          `json:"tun,omitempty"`
	Uplink  string          `json:"uplink,omitempty"`
	Address netip.Prefix    `json:"tun_address,omitzero"`    // that the TUN must have
	TUNMTU  int             `json:"tun_mtu,omitempty"`       // bytes; 0 for any
	Own     []netip.Prefix  `json:"tun_addresses,omitempty"` // that the TUN has besides
	Sysctls []kernel.Sysctl `json:"sysctls"`                 // of the TUN, too, which must exist by then
	Routes  []Route         `json:"routes"`
	Rules   []Rule          `json:"rules"`
	Divert  []Rule          `json:"divert"` // that lead into the TUN: the last step, and the first to be undone

	// LinkLocal is a further address that the uplink must have.
	LinkLocal netip.Addr `json:"link_local,omitzero"`
}

// Route is a route in a table of the plan's own. Without Device it is a
// throw: the search goes on in the tables of later rules.
type Route struct {
	Table   int          `json:"table"`
	Prefix  netip.Prefix `json:"prefix"`
	Device  string       `json:"device,omitempty"`
	Gateway netip.Addr   `json:"gateway,omitzero"`
	Src     netip.Addr   `json:"src,omitzero"`
	MTU     int          `json:"mtu,omitempty"` // bytes; 0 for the device's
	Also    []Hop        `json:"also,omitempty"`

	Congestion string `json:"congestion_control,omitempty"` // of TCP; "" as the kernel has it
}

// Rule is a routing policy rule. With neither Table nor Goto it does nothing;
// other rules go to it.
type Rule struct {
	Priority int          `json:"priority"`
	IPv6     bool         `json:"ipv6,omitempty"`
	Iif      string       `json:"iif,omitempty"` // lo: what this machine sends
	To       netip.Prefix `json:"to,omitzero"`
	Protocol int          `json:"protocol,omitempty"` // as in the IP header; 0 for any
	Port     uint16       `json:"port,omitempty"`     // destination
	Table    int          `json:"table,omitempty"`
	Goto     int          `json:"goto,omitempty"`
}
