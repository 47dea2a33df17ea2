package dataplane

import (
	"weft/encap"
	"weft/flowcell"
	"weft/internal/paths"
)

// accepts returns a function that reports whether a packet which is well formed is for a
// host: to one of its addresses. Switches tell the address that labels come from of errors
// about them.
func (c *Config) accepts() func(pkt *flowcell.Packet, b []byte) bool {
	self, self6, labels := flowcell.AddressFrom(c.Address), flowcell.Address{}, flowcell.Address{}
	if c.Address6.IsValid() {
		self6 = flowcell.AddressFrom(c.Address6)
	}
	if c.Carrier == encap.CarrierSRv6 {
		labels = flowcell.AddressFrom(paths.Source6(c.Topology, c.Address))
	}
	return func(pkt *flowcell.Packet, _ []byte) bool {
		dst := pkt.Flow.Dst
		return dst == self || dst != (flowcell.Address{}) && (dst == self6 || dst == labels && pkt.Flow.Proto == flowcell.ProtoICMPv6)
	}
}
