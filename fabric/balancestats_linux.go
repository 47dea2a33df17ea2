package fabric

import (
	"github.com/vishvananda/netlink"

	"weft/internal/balance"
	"weft/internal/kernel"
)

// Stats returns what has been counted since the programs were attached.
func (b *Balance) Stats() (s BalanceStats, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s = BalanceStats{Rule: b.rule.String(), Destinations: b.filled.destinations, LeftOut: b.filled.leftOut, Grouped: b.filled.grouped}
	if b.handle == nil {
		return s, errBalanceClosed
	}
	if b.rule.AtLeaf() {
		return b.leafStats(s)
	}
	return s, b.in.Counters(s.sums()...)
}

// ReadBalance returns what the programs at ports have counted, whoever attached them; nil if
// there are none. The rule is left out. h is of the calling thread's network namespace.
func ReadBalance(h *netlink.Handle, ports []netlink.Link) (*BalanceStats, error) {
	var s BalanceStats
	ok, err := kernel.BalanceFilter.Counters(h, ports, s.sums()...)
	if err != nil || !ok {
		return nil, err
	}
	if leaf, err := readLeaf(h, ports, &s); leaf || err != nil {
		return &s, err
	}
	routes, err := hopsByPrefix(h, nil)
	if err != nil {
		return nil, err
	}
	_, _, f := tablesOf(routes, make([]balance.Set, maxBalanceSets))
	s.Destinations, s.LeftOut = f.destinations, f.leftOut
	return &s, nil
}
