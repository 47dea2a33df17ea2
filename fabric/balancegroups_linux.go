package fabric

import (
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"

	"weft/internal/kernel"
)

// groupsMap is a map that is bound to weft_balance, with the groups of next hops of the plan
// that routes were made by: whoever brings the program's tables in step with the kernel's
// routes, which have no groups, finds them there. The program itself does not look.
const groupsMap = "weft_groups"

// maxGrouped bounds the hops that are in a group other than the first. Above it a hop counts
// as one of the first.
const maxGrouped = 1 << 17

// groupOfHop is a key of the map: a hop of a route.
type groupOfHop struct {
	Bits uint32
	Addr [4]byte
	Port uint32 // interface index
}

func groupKey(p netip.Prefix, port int) groupOfHop {
	return groupOfHop{uint32(p.Bits()), p.Addr().As4(), uint32(port)}
}

func bindGroups(prog *ebpf.Program) (*ebpf.Map, error) {
	// Without preallocation it takes no memory where all is symmetric.
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: groupsMap, Type: ebpf.Hash, KeySize: 12, ValueSize: 4, MaxEntries: maxGrouped, Flags: noPrealloc})
	if err != nil {
		return nil, kernel.Explain(fmt.Errorf("eBPF map: %w", err))
	}
	if err := prog.BindMap(m); err != nil {
		m.Close()
		return nil, kernel.Explain(fmt.Errorf("eBPF map bound to a program (Linux 5.10): %w", err))
	}
	return m, nil
}

const noPrealloc = 1 // BPF_F_NO_PREALLOC

// Group has drill send flows within the groups of a plan's routes. It is for who makes the
// kernel's routes by the plan; Repair then brings the programs' tables in step. Of other
// rules it does nothing.
func (b *Balance) Group(p NodePlan) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.handle == nil {
		return errBalanceClosed
	}
	if err := b.group(p.Routes); err != nil {
		return fmt.Errorf("balance: groups: %w", err)
	}
	return nil
}

func (b *Balance) group(routes []Route) error {
	m := b.in.Maps[groupsMap]
	if m == nil {
		return nil
	}
	return putGroups(m, routes, portIndexes(b.links))
}

// putGroups makes the map that of the main table's routes.
func putGroups(m *ebpf.Map, routes []Route, index map[string]int) error {
	want := make(map[groupOfHop]uint32)
	for _, r := range routes {
		for _, hop := range r.Via {
			if i, ok := index[hop.Port]; ok && r.Table == 0 && r.Prefix.Addr().Is4() && hop.Group > 0 && len(want) < maxGrouped {
				want[groupKey(r.Prefix, i)] = uint32(hop.Group)
			}
		}
	}
	_, err := kernel.SyncMap(m, want)
	return err
}

// readGroups returns the groups other than the first.
func readGroups(m *ebpf.Map) (map[groupOfHop]uint32, error) {
	if m == nil {
		return nil, nil
	}
	var key groupOfHop
	var group uint32
	all := make(map[groupOfHop]uint32)
	for i := m.Iterate(); ; {
		if !i.Next(&key, &group) {
			return all, i.Err()
		}
		all[key] = group
	}
}
