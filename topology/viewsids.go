package topology

import (
	"errors"
	"fmt"
	"net/netip"
)

// bounceSIDs are what a bouncing switch takes the outer header off an IPv4 and an IPv6 packet
// at.
type bounceSIDs struct{ four, six netip.Addr }

// of returns that of a family, and false if the switch has none.
func (s bounceSIDs) of(six bool) (netip.Addr, bool) {
	if six {
		return s.six, s.six.IsValid()
	}
	return s.four, s.four.IsValid()
}

// SID returns the SRv6 SID at which the bouncing switch of path number n takes the outer
// header off an IPv4 packet or, with six, an IPv6 packet (graph.SIDs). The switches' own routes
// to the switch's locator are the way there. It is false where the fabric is computed, and if
// the switch has no SIDs.
func (s PathSet) SID(n int, six bool) (netip.Addr, bool) {
	if s.rack == nil || s.rack.list == nil {
		return netip.Addr{}, false
	}
	return s.t.view.sidsOf(s.rack.list.paths[n].bounce).of(six)
}

// SIDAt is PathSet.SID for the switch with a bouncing address.
func (t *Topology) SIDAt(bounce netip.Addr, six bool) (netip.Addr, bool) {
	if t.view == nil {
		return netip.Addr{}, false
	}
	id, ok := t.view.byAddr[bounce]
	if !ok {
		return netip.Addr{}, false
	}
	return t.view.sidsOf(id).of(six)
}

// SIDSource returns the IPv6 address from which the host sends by SIDs: its own. It is false
// where the fabric is computed, and if the host has none.
func (t *Topology) SIDSource() (netip.Addr, bool) {
	if t.view == nil {
		return netip.Addr{}, false
	}
	return t.view.source6, t.view.source6.IsValid()
}

// CheckSIDs returns an error that names what is missing for SRv6 by the SIDs of a fabric that
// is data: SIDs of all switches at which packets bounce, and an IPv6 address of the host.
func (t *Topology) CheckSIDs() error {
	v := t.view
	if v == nil {
		return errors.New("topology: a computed fabric has no SIDs")
	}
	first := 1 + len(v.racks)
	for i, s := range v.sids {
		if _, ok := s.of(false); !ok {
			name := v.nodes[first+i].Name
			return fmt.Errorf("topology: switch %s has no SIDs: give it a locator in the graph, such as sids: {node: \"fcbb:bbbb:1::/48\"}, or take another carrier", name)
		}
	}
	if !v.source6.IsValid() {
		return fmt.Errorf("topology: host %s has no IPv6 address, from which packets to SIDs come: give it one in the graph, or take another carrier", v.nodes[0].Name)
	}
	return nil
}

// sidsOf returns those of a bouncing switch; of another node none.
func (v *view) sidsOf(id NodeID) (s bounceSIDs) {
	if i := int(id) - 1 - len(v.racks); i >= 0 && i < len(v.sids) {
		s = v.sids[i]
	}
	return s
}
