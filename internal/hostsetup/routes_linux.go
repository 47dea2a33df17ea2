package hostsetup

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
)

// The action of a rule that does nothing (FR_ACT_NOP of linux/fib_rules.h), for
// which package netlink has no name.
const ruleNop = 3

var hostFamilies = []int{netlink.FAMILY_V4, netlink.FAMILY_V6}

// syncHostRules makes the rules with weft's protocol number those wanted, and
// returns a sentence for each change. It adds missing rules before it removes
// others.
func syncHostRules(h *netlink.Handle, want []Rule) (changed []string, err error) {
	have, err := hostRules(h)
	if err != nil {
		return nil, err
	}
	for _, r := range want {
		n := r.netlink()
		key := ruleKey(n)
		if _, ok := have[key]; ok {
			delete(have, key)
			continue
		}
		if err := h.RuleAdd(&n); err != nil && !errors.Is(err, unix.EEXIST) {
			return changed, kernel.Explain(fmt.Errorf("%s (kernel option IP_MULTIPLE_TABLES): %w", r.command(), err))
		}
		changed = append(changed, fmt.Sprintf("rule %d was missing: added", r.Priority))
	}
	// The kernel removes the first rule that has what is named, and perhaps more:
	// so those that have more go first.
	extra := slices.SortedFunc(maps.Values(have), func(a, b netlink.Rule) int { return b.IPProto - a.IPProto })
	for _, r := range extra {
		if err := h.RuleDel(&r); err != nil && !errors.Is(err, unix.ENOENT) {
			return changed, kernel.Explain(fmt.Errorf("remove rule %d: %w", r.Priority, err))
		}
		changed = append(changed, fmt.Sprintf("rule %d was one too many: removed", r.Priority))
	}
	return changed, nil
}

// hostRules lists the rules that are ours.
func hostRules(h *netlink.Handle) (map[string]netlink.Rule, error) {
	ours := make(map[string]netlink.Rule)
	for _, family := range hostFamilies {
		rules, err := kernel.Dumped(func() ([]netlink.Rule, error) { return h.RuleList(family) })
		if errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP) { // no IPv6 here
			continue
		}
		if err != nil {
			return nil, kernel.Explain(fmt.Errorf("list the rules: %w", err))
		}
		for _, r := range rules {
			if r.Protocol == kernel.RouteProtocol && r.Priority >= RuleTunnel && r.Priority <= RuleEnd {
				r.Family = family
				ours[ruleKey(r)] = r
			}
		}
	}
	return ours, nil
}

func (r Rule) netlink() netlink.Rule {
	n := *netlink.NewRule()
	n.Family, n.Priority, n.Protocol = netlink.FAMILY_V4, r.Priority, kernel.RouteProtocol
	if r.IPv6 {
		n.Family = netlink.FAMILY_V6
	}
	n.IifName, n.IPProto = r.Iif, r.Protocol
	if r.To.IsValid() {
		n.Dst = kernel.IPNet(r.To)
	}
	if r.Port != 0 {
		n.Dport = netlink.NewRulePortRange(r.Port, r.Port)
	}
	switch {
	case r.Table != 0:
		n.Table = r.Table
	case r.Goto != 0:
		n.Goto = r.Goto
	default:
		n.Type = ruleNop
	}
	return n
}

// ruleKey is what two rules must share to be the same.
func ruleKey(r netlink.Rule) string {
	port := uint16(0)
	if r.Dport != nil {
		port = r.Dport.Start
	}
	dst := ""
	if r.Dst != nil {
		dst = r.Dst.String()
	}
	return fmt.Sprint(r.Family, r.Priority, r.IifName, dst, r.IPProto, port, max(r.Table, 0), max(r.Goto, 0))
}

// syncHostRoutes makes the routes of our two tables those wanted, without a
// moment in which one is missing, and says what it changed, a sentence each.
func syncHostRoutes(h *netlink.Handle, want []Route) (changed []string, err error) {
	have, err := hostRoutes(h)
	if err != nil {
		return nil, err
	}
	for _, r := range want {
		n, err := r.netlink(h)
		if err != nil {
			return changed, err
		}
		key := hostRouteKey(n)
		was, ok := have[key]
		delete(have, key)
		if ok && sameRoute(was, n) {
			continue
		}
		if err := h.RouteReplace(&n); err != nil {
			if r.Congestion != "" && errors.Is(err, unix.EINVAL) {
				err = fmt.Errorf("%w; does the kernel have the congestion control %s?", err, r.Congestion)
			}
			return changed, kernel.Explain(fmt.Errorf("%s: %w", r.command(), err))
		}
		what := "missing: added"
		if ok {
			what = "another one: replaced"
		}
		changed = append(changed, fmt.Sprintf("route to %s in table %d was %s", r.Prefix, r.Table, what))
	}
	for _, r := range have {
		if err := h.RouteDel(&r); err != nil && !errors.Is(err, unix.ESRCH) {
			return changed, kernel.Explain(fmt.Errorf("remove the route to %s from table %d: %w", r.Dst, r.Table, err))
		}
		changed = append(changed, fmt.Sprintf("route to %s in table %d was one too many: removed", prefixKey6(r), r.Table))
	}
	return changed, nil
}

// sameRoute compares what is there with what is wanted. A throw of IPv6 has the loopback for
// its device, whatever was asked for.
func sameRoute(was, want netlink.Route) bool {
	return was.Type == want.Type && (was.LinkIndex == want.LinkIndex || want.Type == unix.RTN_THROW) &&
		was.Gw.Equal(want.Gw) && was.Src.Equal(want.Src) && was.MTU == want.MTU && was.Congctl == want.Congctl &&
		slices.EqualFunc(was.MultiPath, want.MultiPath, func(a, b *netlink.NexthopInfo) bool {
			return a.LinkIndex == b.LinkIndex && a.Gw.Equal(b.Gw)
		})
}

// hostRoutes lists what is in our tables and ours.
func hostRoutes(h *netlink.Handle) (map[string]netlink.Route, error) {
	ours := make(map[string]netlink.Route)
	for _, table := range []int{TableIn, TableOut} {
		for _, family := range hostFamilies {
			routes, err := kernel.Dumped(func() ([]netlink.Route, error) {
				return h.RouteListFiltered(family, &netlink.Route{Table: table, Protocol: kernel.RouteProtocol}, netlink.RT_FILTER_TABLE|netlink.RT_FILTER_PROTOCOL)
			})
			if errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOENT) {
				continue
			}
			if err != nil {
				return nil, kernel.Explain(fmt.Errorf("list the routes of table %d: %w", table, err))
			}
			for _, r := range routes {
				ours[hostRouteKey(r)] = r
			}
		}
	}
	return ours, nil
}

func (r Route) netlink(h *netlink.Handle) (netlink.Route, error) {
	n := netlink.Route{Dst: kernel.IPNet(r.Prefix), Protocol: kernel.RouteProtocol, Table: r.Table, Type: unix.RTN_UNICAST, MTU: r.MTU, Congctl: r.Congestion}
	if r.Device == "" {
		n.Type = unix.RTN_THROW
		return n, nil
	}
	links, err := kernel.Links(h, []string{r.Device})
	if err != nil {
		return n, err
	}
	n.LinkIndex = links[0].Attrs().Index
	if r.Src.IsValid() {
		n.Src = r.Src.AsSlice()
	}
	if r.Gateway.IsValid() {
		n.Gw, n.Flags = r.Gateway.AsSlice(), int(netlink.FLAG_ONLINK)
	} else if r.Prefix.Addr().Is4() {
		n.Scope = netlink.SCOPE_LINK
	}
	return r.also(h, n)
}

// also makes a route with several hops of one that has the first.
func (r Route) also(h *netlink.Handle, n netlink.Route) (netlink.Route, error) {
	if len(r.Also) == 0 {
		return n, nil
	}
	n.MultiPath = []*netlink.NexthopInfo{{LinkIndex: n.LinkIndex, Gw: n.Gw, Flags: n.Flags}}
	n.LinkIndex, n.Gw, n.Flags = 0, nil, 0
	for _, hop := range r.Also {
		links, err := kernel.Links(h, []string{hop.Device})
		if err != nil {
			return n, err
		}
		next := &netlink.NexthopInfo{LinkIndex: links[0].Attrs().Index}
		if hop.Gateway.IsValid() {
			next.Gw, next.Flags = hop.Gateway.AsSlice(), int(netlink.FLAG_ONLINK)
		}
		n.MultiPath = append(n.MultiPath, next)
	}
	return n, nil
}

func hostRouteKey(r netlink.Route) string { return fmt.Sprint(r.Table, " ", prefixKey6(r)) }

// prefixKey6 is kernel.PrefixKey that tells the default routes of both families apart.
func prefixKey6(r netlink.Route) string {
	if r.Dst == nil && r.Family == netlink.FAMILY_V6 {
		return netip.PrefixFrom(netip.IPv6Unspecified(), 0).String()
	}
	return kernel.PrefixKey(r)
}
