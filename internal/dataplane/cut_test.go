package dataplane

import (
	"testing"
	"time"

	"weft/flowcell"
)

// Below a device that encapsulates by the number, the end of a connection takes
// its last flowcell's, and so its path; sent again after timeouts it tries others.
func TestWrap_uplinkEndsByTheLastFlowcell(t *testing.T) {
	e := testEgress(t, fatTree, "presto", uplink)
	fin := dataPacket(1, 0)
	fin[33] |= flowcell.FlagFIN
	data := flowcell.Number(0)
	for range 3 {
		data = wrapOne(t, e, dataPacket(1, 1448), time.Second).number
	}
	for range 2 {
		if w := wrapOne(t, e, fixed(fin), time.Second+flowcell.LeastTimeout); w.number != data {
			t.Errorf("FIN is %04x behind %04x", w.number, data)
		}
	}
	cells := map[uint16]bool{}
	for i := range 4 {
		w := wrapOne(t, e, fixed(fin), time.Duration(2+i)*time.Second)
		cells[w.number.Cell()%4] = true
	}
	if len(cells) != 4 {
		t.Errorf("four FINs try paths %v", cells)
	}
}
