package kernel

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"weft/internal/shortage"
)

// ErrNoMap means that a program does not have a map.
var ErrNoMap = errors.New("not found")

// ProgramMap returns one of the maps that a loaded program uses.
func ProgramMap(prog *ebpf.Program, name string) (*ebpf.Map, error) {
	info, err := prog.Info()
	if err != nil {
		return nil, Explain(err)
	}
	ids, _ := info.MapIDs()
	for _, id := range ids {
		m, err := ebpf.NewMapFromID(id)
		if err != nil {
			return nil, Explain(err)
		}
		mi, err := m.Info()
		if err == nil && mi.Name == name {
			return m, nil
		}
		m.Close()
		if shortage.Is(err) {
			return nil, Explain(err)
		}
	}
	return nil, fmt.Errorf("eBPF program %s has no map %s: %w", info.Name, name, ErrNoMap)
}

// MapOf is ProgramMap of the program with this number.
func MapOf(id ebpf.ProgramID, name string) (*ebpf.Map, error) {
	prog, err := openProgram(id)
	if err != nil {
		return nil, err
	}
	defer prog.Close()
	return ProgramMap(prog, name)
}

// SumCounters adds up the counters of all CPUs, in the order of the program's
// enum.
func SumCounters(m *ebpf.Map, sums ...*uint64) error {
	for i, sum := range sums {
		if err := sumCounter(m, uint32(i), sum); err != nil {
			return err
		}
	}
	return nil
}

// sumCounter is SumCounters for one counter.
func sumCounter(m *ebpf.Map, i uint32, sum *uint64) error {
	var perCPU []uint64
	if err := m.Lookup(i, &perCPU); err != nil {
		return fmt.Errorf("eBPF counter %d: %w", i, err)
	}
	*sum = 0
	for _, n := range perCPU {
		*sum += n
	}
	return nil
}

// CountersMap is in programs that count: bpf/count.h.
const CountersMap = "counters"

// Counters reads the counters of the program that the ports share. It returns false if no
// port has it. sums are in the order of the program's enum.
func (f Filter) Counters(h *netlink.Handle, ports []netlink.Link, sums ...*uint64) (ok bool, err error) {
	for _, port := range ports {
		id, err := f.Program(h, port)
		if err != nil {
			return false, err
		}
		if id == 0 {
			continue
		}
		m, err := MapOf(id, CountersMap)
		if err != nil {
			return false, err
		}
		defer m.Close()
		return true, SumCounters(m, sums...)
	}
	return false, nil
}
