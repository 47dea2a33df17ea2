package fabric

import (
	"fmt"
	"net/netip"
	"slices"

	"weft/internal/kernel"
)

// A spine switch of a VL2 fabric is several virtual ones (DRB §3.2), each with a
// bouncing address of its own, and what comes down from a virtual spine must go
// by that virtual spine's ports. Nothing in the inner packet names the virtual
// spine, so decapsulation marks the packet, and a rule for each mark looks up
// that virtual spine's routing table.
//
// The kernel's ipip device leaves no mark. But there is one device for each
// bouncing address, and its decapsulated packets come in by it: a rule for the
// device does the same.
const (
	markMask          = 0x7ff // the bits of the mark that are ours; the others are left as they are
	virtualRule       = 5760  // priority of the rules; after those of hosts, before the main table
	virtualTableFirst = 5800  // that of a switch's first virtual spine
)

// VirtualSpine is one of the switches that a spine of VL2 is.
type VirtualSpine struct {
	Address netip.Addr `json:"address"` // at which it decapsulates
	Mark    uint32     `json:"mark"`    // of what was inside, in the bits 0x7ff
	Table   int        `json:"table"`   // that routes it
}

func virtualTable(v int) int { return virtualTableFirst + v }

func isVirtualTable(table int) bool {
	return table >= virtualTableFirst && table < virtualTableFirst+markMask
}

func virtualSpines(bouncing []netip.Addr) []VirtualSpine {
	list := make([]VirtualSpine, len(bouncing))
	for v, addr := range bouncing {
		list[v] = VirtualSpine{addr, uint32(v + 1), virtualTable(v)}
	}
	return list
}

// addresses are the node's own and those at which it decapsulates, which for
// the kernel's decapsulator must be local.
func (p NodePlan) addresses() []netip.Addr {
	return p.addressesOf(p.Address, netip.Addr.Is4, p.Bouncing)
}

// addresses6 is addresses for IPv6.
func (p NodePlan) addresses6() []netip.Addr {
	return p.addressesOf(p.Address6, netip.Addr.Is6, p.Bouncing)
}

// addressesOf lists one family, each address once.
func (p NodePlan) addressesOf(first netip.Addr, is func(netip.Addr) bool, also []netip.Addr) (list []netip.Addr) {
	for _, addr := range slices.Concat([]netip.Addr{first}, also, p.More) {
		if is(addr) && !slices.Contains(list, addr) {
			list = append(list, addr)
		}
	}
	return list
}

// linkLocal is the address that a port is to have besides the kernel's.
func (p NodePlan) linkLocal(port int) netip.Addr {
	if p.LinkLocal6.IsValid() {
		return p.LinkLocal6
	}
	return p.Ports[port].LinkLocal6
}

// has6 reports whether the node has IPv6.
func (p NodePlan) has6() bool { return len(p.addresses6())+len(p.Routes6)+len(p.Local) > 0 }

// marks returns the mark of each bouncing address, 0 for none.
func (p NodePlan) marks() map[netip.Addr]uint32 {
	marks := make(map[netip.Addr]uint32, len(p.Bouncing))
	for _, addr := range p.Bouncing {
		marks[addr] = 0
	}
	for _, v := range p.Virtual {
		marks[v.Address] = v.Mark
	}
	return marks
}

// rule sends to a routing table what has a mark in the bits of a mask, or came in by a
// device. Rules of lower priority come first.
type rule struct {
	priority   int
	mark, mask uint32
	iif        string
	table      int
}

// rules returns all.
func (p NodePlan) rules(ipip bool) []rule { return append(p.virtualRules(ipip), p.suffixRules()...) }

// virtualRules returns the rules of the virtual spines: by the mark that a
// program leaves and, with ipip, by the device as well.
func (p NodePlan) virtualRules(ipip bool) []rule {
	var rules []rule
	for i, v := range p.Virtual {
		rules = append(rules, rule{priority: virtualRule, mark: v.Mark, mask: markMask, table: v.Table})
		if ipip {
			rules = append(rules, rule{priority: virtualRule, iif: decapDevice(i), table: v.Table})
		}
	}
	return rules
}

func (r rule) command() string {
	what := fmt.Sprintf("fwmark %#x/%#x", r.mark, r.mask)
	if r.iif != "" {
		what = "iif " + r.iif
	}
	return fmt.Sprintf("ip rule add priority %d %s lookup %d protocol %d || true # it may exist", r.priority, what, r.table, kernel.RouteProtocol)
}
