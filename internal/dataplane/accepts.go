package dataplane

import (
	"net/netip"
	"slices"

	"weft/encap"
	"weft/flowcell"
	"weft/internal/paths"
)

// accepts returns a function that reports whether a packet which is well formed is for a
// host: to one of its addresses, or to what is behind it. Switches tell the address that labels come from of errors
// about them.
func (c *Config) accepts() func(pkt *flowcell.Packet, b []byte) bool {
	self, self6, labels := flowcell.AddressFrom(c.Address), flowcell.Address{}, flowcell.Address{}
	if c.Address6.IsValid() {
		self6 = flowcell.AddressFrom(c.Address6)
	}
	if c.Carrier == encap.CarrierSRv6 {
		labels = flowcell.AddressFrom(paths.Source6(c.Topology, c.Address))
	}
	behind := prefixSet(c.Behind)
	return func(pkt *flowcell.Packet, _ []byte) bool {
		dst := pkt.Flow.Dst
		return dst == self || dst != (flowcell.Address{}) && (dst == self6 || dst == labels && pkt.Flow.Proto == flowcell.ProtoICMPv6 || behind(dst))
	}
}

// prefixSet returns a function that reports whether an address lies in one of some prefixes.
func prefixSet(list []netip.Prefix) func(flowcell.Address) bool {
	set := make(map[netip.Prefix]bool)
	var lengths []int
	for _, p := range list {
		set[p] = true
		if !slices.Contains(lengths, p.Bits()) {
			lengths = append(lengths, p.Bits())
		}
	}
	return func(a flowcell.Address) bool {
		for _, bits := range lengths {
			if p, err := a.IP().Prefix(bits); err == nil && set[p] {
				return true
			}
		}
		return false
	}
}
