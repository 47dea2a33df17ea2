package fabric

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"weft/flowcell"
)

// cutOracle numbers packets as the program must, by flowcell's own Cutter. Nil
// numbers none.
type cutOracle struct {
	own   []netip.Addr // whose TCP is cut
	unit  flowcell.Unit
	flows map[flowcell.FiveTuple]*cutFlow
	cells uint64 // begun
}

type cutFlow struct {
	cutter flowcell.Cutter
	last   flowcell.Number // of the last segment sent
}

func newCutOracle(unit flowcell.Unit, own ...netip.Addr) *cutOracle {
	return &cutOracle{own: own, unit: unit, flows: make(map[flowcell.FiveTuple]*cutFlow)}
}

// number returns the packet that leaves for one that is encapsulated.
func (o *cutOracle) number(packet []byte, segments int) []byte {
	var p flowcell.Packet
	if o == nil || !slices.Contains(o.own, netip.AddrFrom4([4]byte(packet[12:]))) ||
		!numbered(packet) || p.Parse(packet) != nil || p.IsPureACK() {
		return packet
	}
	n := flowcell.Number(binary.BigEndian.Uint16(packet[4:])) &^ 63
	f := o.flows[p.Flow]
	switch {
	case p.Payload > 0:
		if f == nil {
			f = &cutFlow{cutter: flowcell.NewCutter(tcpHash(packet) >> 30)}
			o.flows[p.Flow] = f
		}
		var begins bool
		if n, begins = f.cutter.Next(o.unit, int(p.Payload), segments, 0); begins {
			o.cells++
		}
		f.last = n + flowcell.Number(segments-1)
	case f != nil:
		n = f.last
	}
	packet = slices.Clone(packet)
	n.Stamp(packet)
	return packet
}

// end tells of another table.
func (o *cutOracle) end() {
	for _, f := range o.flows {
		f.cutter.End()
	}
}

// counts are OffloadStats.Flows and Flowcells.
func (o *cutOracle) counts() (flows, cells uint64) {
	if o == nil {
		return 0, 0
	}
	return uint64(len(o.flows)), o.cells
}
