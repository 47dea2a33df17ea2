package fabric

import (
	"fmt"

	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
)

// syncRules makes the rules of our priorities and protocol number those planned.
func syncRules(h *netlink.Handle, planned []rule) (changed int, err error) {
	list, err := kernel.Dumped(func() ([]netlink.Rule, error) { return h.RuleList(netlink.FAMILY_V4) })
	if err != nil {
		return 0, kernel.Explain(fmt.Errorf("list the rules: %w", err))
	}
	have := make(map[rule]netlink.Rule)
	for _, r := range list {
		if r.Priority < virtualRule || r.Priority > suffixRule || r.Protocol != kernel.RouteProtocol {
			continue
		}
		is := rule{priority: r.Priority, mark: r.Mark, iif: r.IifName, table: r.Table}
		if r.Mask != nil {
			is.mask = *r.Mask
		}
		have[is] = r
	}
	for _, r := range planned {
		if _, ok := have[r]; ok {
			delete(have, r)
			continue
		}
		n := netlinkRule(r)
		if err := h.RuleAdd(n); err != nil {
			return changed, kernel.Explain(fmt.Errorf("%s (kernel option IP_MULTIPLE_TABLES): %w", r.command(), err))
		}
		changed++
	}
	for r := range have {
		if err := h.RuleDel(netlinkRule(r)); err != nil {
			return changed, kernel.Explain(fmt.Errorf("remove the rule to table %d: %w", r.table, err))
		}
		changed++
	}
	return changed, nil
}

func netlinkRule(r rule) *netlink.Rule {
	n := netlink.NewRule()
	n.Family, n.Priority, n.Protocol = netlink.FAMILY_V4, r.priority, kernel.RouteProtocol
	n.IifName, n.Table = r.iif, r.table
	if r.iif == "" {
		n.Mark, n.Mask = r.mark, &r.mask
	}
	return n
}
