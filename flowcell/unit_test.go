package flowcell

import (
	"testing"
	"time"
)

func TestUnit_saysWhatItIs(t *testing.T) {
	for _, c := range []struct {
		unit          Unit
		name          string
		cuts, numbers bool
	}{
		{Unit{}, "packet", false, false},
		{Unit{Kind: UnitPacket}, "packet", false, false},
		{Unit{Kind: UnitFlowcell, Bytes: FlowcellBytes}, "flowcell of 64 KB", true, true},
		{Unit{Kind: UnitFlowcell, Bytes: 100_000}, "flowcell of 100000 bytes", true, true},
		{Unit{Kind: UnitFlowlet, Gap: FlowletGap}, "flowlet between pauses of 500µs", true, false},
		{Unit{Kind: UnitFlowlet, Gap: 2 * time.Millisecond}, "flowlet between pauses of 2ms", true, false},
		{Unit{Kind: UnitFlow}, "flow", false, false},
	} {
		if c.unit.String() != c.name || c.unit.Cuts() != c.cuts || c.unit.Numbers() != c.numbers {
			t.Errorf("%v, cuts %v, numbers %v; want %s, %v, %v", c.unit, c.unit.Cuts(), c.unit.Numbers(), c.name, c.cuts, c.numbers)
		}
	}
}
