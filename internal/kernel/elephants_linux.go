package kernel

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"weft/internal/elephant"
)

// The maps and the constant of bpf/elephant.h.
const (
	ElephantFlowsMap = "elephant_flows"
	ElephantPinsMap  = "elephant_pins"
	elephantsVar     = "elephants"
)

// PinValue is struct pin of bpf/elephant.h.
type PinValue struct {
	Until uint64 // ns of the monotonic clock
	Way   uint32
	Among uint32
}

// SetElephants prepares a program for its duty. One that has none gets room for one flow.
func SetElephants(spec *ebpf.CollectionSpec, d elephant.Duty) error {
	if d < elephant.PinAndCount {
		spec.Maps[ElephantFlowsMap].MaxEntries = 1
	}
	if d < elephant.PinFlows {
		spec.Maps[ElephantPinsMap].MaxEntries = 1
	}
	return spec.Variables[elephantsVar].Set(uint8(d))
}

// FlowCounts reads what a program has counted, into a slice that it may grow. A flow that
// begins or is forgotten meanwhile may be missing.
func FlowCounts(m *ebpf.Map, counts []elephant.Count) ([]elephant.Count, error) {
	const most = 4096 // at a time
	counts = counts[:0]
	keys, values := make([]elephant.Key, most), make([]uint64, most)
	var cursor ebpf.MapBatchCursor
	for {
		n, err := m.BatchLookup(&cursor, keys, values, nil)
		for i := range n {
			counts = append(counts, elephant.Count{Key: keys[i], Bytes: values[i]})
		}
		switch {
		case errors.Is(err, ebpf.ErrKeyNotExist):
			return counts, nil // the end
		case err != nil:
			return counts, Explain(fmt.Errorf("eBPF map of flows: %w", err))
		case len(counts) > 4*elephant.MaxCounted:
			return counts, errors.New("eBPF map of flows: it has no end")
		}
	}
}
