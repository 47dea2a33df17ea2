package fabric

import (
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"

	"weft/topology"
)

// lpmKey is struct prefix of bpf/spray.c.
type lpmKey struct {
	Length uint32
	Addr   [4]byte
}

// groupValue is struct group of bpf/spray.c.
type groupValue struct {
	N, Mode, Shift        uint32
	CellBytes, Generation uint32
	Order                 [maxPaths][4]byte
}

// setTable puts a topology's table in place of the one in use. A table of 2,048
// racks, the most that 64-port switches make, takes 8 MB of kernel memory. Its
// generation ends the flowcells under way, whose paths may be others now: the
// receiver takes a gap inside a flowcell for loss.
func (o *Offload) setTable(t *topology.Topology) error {
	table, err := newSprayTable(t, o.self, o.policy)
	if err != nil {
		return err
	}
	spec := o.inner.Copy()
	spec.MaxEntries = uint32(max(1, len(table)))
	m, err := ebpf.NewMap(spec)
	if err != nil {
		return explain(fmt.Errorf("eBPF table of %d racks: %w", len(table), err))
	}
	defer m.Close()
	o.tabled++
	values := make(map[*sprayGroup]*groupValue)
	for prefix, g := range table {
		v := values[g]
		if v == nil {
			v = g.value()
			v.CellBytes, v.Generation = uint32(o.policy.Unit.Bytes), o.tabled
			values[g] = v
		}
		if err := m.Put(lpmKeyOf(prefix), v); err != nil {
			return fmt.Errorf("eBPF table: %v: %w", prefix, err)
		}
	}
	// The kernel returns from this when no packet uses the old one any more.
	if err := o.tables.Put(uint32(0), m); err != nil {
		return fmt.Errorf("eBPF table: %w", err)
	}
	return nil
}

func lpmKeyOf(p netip.Prefix) lpmKey {
	return lpmKey{uint32(p.Bits()), p.Addr().As4()}
}

func (g *sprayGroup) value() *groupValue {
	v := &groupValue{N: uint32(len(g.order)), Mode: uint32(g.mode), Shift: g.shift}
	for i, a := range g.order {
		v.Order[i] = a.As4()
	}
	return v
}
