package flowcell

import "testing"

func TestUnit_names(t *testing.T) {
	if UnitPacket.String() != "packet" || UnitFlow.String() != "flow" {
		t.Errorf("%v, %v", UnitPacket, UnitFlow)
	}
}
