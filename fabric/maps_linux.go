package fabric

import (
	"fmt"

	"github.com/cilium/ebpf"
)

// programMap returns one of the maps that a loaded program uses.
func programMap(prog *ebpf.Program, name string) (*ebpf.Map, error) {
	info, err := prog.Info()
	if err != nil {
		return nil, err
	}
	ids, _ := info.MapIDs()
	for _, id := range ids {
		m, err := ebpf.NewMapFromID(id)
		if err != nil {
			return nil, explain(err)
		}
		if mi, err := m.Info(); err == nil && mi.Name == name {
			return m, nil
		}
		m.Close()
	}
	return nil, fmt.Errorf("eBPF program %s has no map %s", info.Name, name)
}

// mapOf is programMap of the program with this number.
func mapOf(id ebpf.ProgramID, name string) (*ebpf.Map, error) {
	prog, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return nil, explain(fmt.Errorf("eBPF program %d: %w", id, err))
	}
	defer prog.Close()
	return programMap(prog, name)
}

// syncMap makes a hash map's entries those of want, which it uses up, and returns
// how many it has changed. What stays the same is there all the time.
func syncMap[K, V comparable](m *ebpf.Map, want map[K]V) (changed int, err error) {
	var key K
	var value V
	var stale []K
	it := m.Iterate()
	for it.Next(&key, &value) {
		if wanted, ok := want[key]; !ok {
			stale = append(stale, key)
		} else if wanted == value {
			delete(want, key)
		}
	}
	if err := it.Err(); err != nil {
		return 0, err
	}
	for _, key := range stale {
		if err := m.Delete(key); err != nil {
			return 0, err
		}
	}
	for key, value := range want {
		if err := m.Put(key, value); err != nil {
			return 0, err
		}
	}
	return len(stale) + len(want), nil
}

// sumCounters adds up what every CPU has counted, in the order of the
// program's enum.
func sumCounters(m *ebpf.Map, sums ...*uint64) error {
	for i, sum := range sums {
		var perCPU []uint64
		if err := m.Lookup(uint32(i), &perCPU); err != nil {
			return fmt.Errorf("eBPF counter %d: %w", i, err)
		}
		*sum = 0
		for _, n := range perCPU {
			*sum += n
		}
	}
	return nil
}
