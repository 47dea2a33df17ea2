package graph

import (
	"fmt"
	"net/netip"
)

// SIDs are a switch's SRv6 SIDs in the form F3216: 32 bits of a block that the fabric shares,
// 16 bits of the node, 16 bits of the function (RFC 9800 §4). The zero value says that the
// switch has none.
type SIDs struct {
	// Node is the locator, a /48, which the switch announces. It is its uN (End with
	// NEXT-C-SID).
	Node netip.Prefix
	// Decap4 and Decap6, of 64 bits, take the outer header off an IPv4 and an IPv6 packet
	// (End.DT4 or End.DX4, and End.DT6; End.DT46 is one SID for both). New fills in zero
	// values, with the functions Function4 and Function6.
	Decap4, Decap6 netip.Prefix
}

// The functions of SIDs of which nothing is said. FRR leaves 0xfe00 to 0xfeff to SIDs that an
// operator sets by hand.
const (
	Function4 = 0xfe04
	Function6 = 0xfe06
)

const (
	// BlockBits is the length of the block, which is the same in all SIDs of a fabric.
	BlockBits = 32
	// LocatorBits is the length of SIDs.Node: block and node.
	LocatorBits  = 48
	functionBits = 64 // and function
)

// None reports whether the switch has no SIDs.
func (s SIDs) None() bool { return s == SIDs{} }

// List returns the prefixes in the order of the fields; nil if there are none. SIDsOf is its
// inverse.
func (s SIDs) List() []netip.Prefix {
	if s.None() {
		return nil
	}
	return []netip.Prefix{s.Node, s.Decap4, s.Decap6}
}

// SIDsOf returns SIDs from a locator alone, or from all three prefixes in the order of the
// fields.
func SIDsOf(list []netip.Prefix) (s SIDs, err error) {
	switch len(list) {
	case 0:
	case 1:
		s.Node = list[0]
	case 3:
		s.Node, s.Decap4, s.Decap6 = list[0], list[1], list[2]
	default:
		return s, fmt.Errorf("%d prefixes, must be the locator, or the locator and the SIDs that take an IPv4 and an IPv6 packet out", len(list))
	}
	return s, nil
}

// function returns the SID of a function of the node.
func (s SIDs) function(f uint16) netip.Prefix {
	a := s.Node.Addr().As16()
	a[LocatorBits/8], a[LocatorBits/8+1] = byte(f>>8), byte(f)
	return netip.PrefixFrom(netip.AddrFrom16(a), functionBits)
}

// complete fills in the SIDs that are left out.
func (s SIDs) complete() SIDs {
	if !s.Node.IsValid() || s.Node.Bits() != LocatorBits || !s.Node.Addr().Is6() {
		return s // check refuses them
	}
	if s.Decap4 == (netip.Prefix{}) {
		s.Decap4 = s.function(Function4)
	}
	if s.Decap6 == (netip.Prefix{}) {
		s.Decap6 = s.function(Function6)
	}
	return s
}

// check says what is wrong with SIDs that are complete.
func (s SIDs) check() error {
	n := s.Node
	if !n.IsValid() {
		return fmt.Errorf("node is missing, the locator, such as fcbb:bbbb:1::/48")
	}
	if a := n.Addr(); n != n.Masked() || n.Bits() != LocatorBits || !a.Is6() || a.Is4In6() || !a.IsGlobalUnicast() {
		return fmt.Errorf("node: %v, must be a locator of IPv6 with 32 bits of block and 16 of node, such as fcbb:bbbb:1::/48", n)
	}
	for _, sid := range []struct {
		name string
		netip.Prefix
	}{{"decap4", s.Decap4}, {"decap6", s.Decap6}} {
		if sid.Prefix != sid.Masked() || sid.Bits() != functionBits || !n.Contains(sid.Addr()) || sid.Addr() == n.Addr() {
			return fmt.Errorf("%s: %v, must be a function of %v, such as %v", sid.name, sid.Prefix, n, s.function(Function4))
		}
	}
	return nil
}

// setSIDs completes and checks all SIDs.
func (g *Graph) setSIDs(Spec) error {
	at := make(map[netip.Prefix]NodeID) // by locator
	for i := range g.nodes {
		n := &g.nodes[i]
		if n.SIDs.None() {
			continue
		}
		if n.Tier == 0 {
			return errorf(n.Line, "host %s: sids are for switches", n.Name)
		}
		n.SIDs = n.SIDs.complete()
		if err := n.SIDs.check(); err != nil {
			return errorf(n.Line, "switch %s: sids: %w", n.Name, err)
		}
		if other, ok := at[n.SIDs.Node]; ok {
			return errorf(n.Line, "switch %s: sids: %s%s has the locator %v, too", n.Name, g.nodes[other].Name, g.at(other), n.SIDs.Node)
		}
		at[n.SIDs.Node] = NodeID(i)
	}
	if len(at) == 0 {
		return nil
	}
	return g.checkLocators(at)
}

// checkLocators refuses addresses and prefixes that lie in a locator, and prefixes that a
// locator lies in. A switch may have addresses in its own locator, but not where it takes
// outer headers off.
func (g *Graph) checkLocators(at map[netip.Prefix]NodeID) error {
	inside := func(a netip.Addr) (id NodeID, ok bool) {
		if a.Is6() {
			p, _ := a.Prefix(LocatorBits)
			id, ok = at[p]
		}
		return id, ok
	}
	for i, n := range g.nodes {
		for _, a := range n.Addresses {
			of, ok := inside(a)
			if !ok {
				continue
			}
			if s := g.nodes[of].SIDs; of != NodeID(i) || s.Decap4.Contains(a) || s.Decap6.Contains(a) {
				return errorf(n.Line, "node %s: its address %v lies within the SIDs of %s%s", n.Name, a, g.nodes[of].Name, g.at(of))
			}
		}
		for _, p := range n.Prefixes {
			if of, ok := inside(p.Addr()); ok && p.Bits() >= LocatorBits {
				return errorf(n.Line, "node %s: its prefix %v lies within the SIDs of %s%s", n.Name, p, g.nodes[of].Name, g.at(of))
			}
		}
		for _, bits := range g.bits[1] {
			if n.SIDs.None() || bits >= LocatorBits {
				continue
			}
			wider, _ := n.SIDs.Node.Addr().Prefix(bits)
			if other, ok := g.byNet[wider]; ok {
				return errorf(n.Line, "switch %s: its locator %v lies within %v of %s%s", n.Name, n.SIDs.Node, wider, g.nodes[other].Name, g.at(other))
			}
		}
	}
	return nil
}
