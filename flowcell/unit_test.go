package flowcell

import (
	"math"
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

func TestUnitAt(t *testing.T) {
	packet := Unit{Kind: UnitPacket}
	cell := func(kb int) Unit { return Unit{Kind: UnitFlowcell, Bytes: kb << 10} }
	for rate, want := range map[float64]Unit{
		0: cell(64), -1: cell(64), math.NaN(): cell(64), math.Inf(1): cell(64),
		1e6: packet, 100e6: packet, 200e6: packet, 250e6: cell(16), 1e9: cell(16),
		1.01e9: cell(16), 1.5e9: cell(16), 2.5e9: cell(32), 5e9: cell(64), 10e9: cell(64), 100e9: cell(64),
	} {
		if got := UnitAt(rate); got != want {
			t.Errorf("UnitAt(%g) = %v, want %v", rate, got, want)
		}
	}
}

// A faster link never has a smaller unit, and from 1 Gbit/s on a flowcell of less than 64 KB takes
// 70 to 142 µs.
func TestUnitAt_grows(t *testing.T) {
	before := 0
	for rate := 1e6; rate < 1e12; rate *= 1.01 {
		u := UnitAt(rate)
		if u.Bytes < before {
			t.Fatalf("%g bit/s has %v, and a slower link cells of %d bytes", rate, u, before)
		}
		before = u.Bytes
		if µs := float64(u.Bytes) * 8e6 / rate; rate >= 1e9 && u.Bytes < FlowcellBytes && (µs < 70 || µs > 142) {
			t.Fatalf("%v at %g bit/s takes %.0f µs", u, rate, µs)
		}
	}
}
