package hostprog

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"time"

	"weft/flowcell"
)

// cutOracle numbers packets as the program must, by flowcell's own Cutter. Nil
// numbers none.
type cutOracle struct {
	own   []netip.Addr // whose TCP is cut
	unit  flowcell.Unit
	flows map[flowcell.FiveTuple]*cutFlow
	cells uint64 // begun
	// last is the tick in which the program has sent a flow's latest data, and now
	// the present one. Where they are nil nobody has looked in time: then the oracle
	// tells by what left whether data was sent again after a timeout.
	last func(packet []byte) uint32
	now  func() uint32
}

// tick is the unit of the program's time.
const tick = 1024 * time.Nanosecond

type cutFlow struct {
	cutter flowcell.Cutter
	at     time.Duration // when data was last sent
	tick   uint32        // the same by the program
	steps  uint64        // number of the first flowcell, and the flowcells begun after it
}

func newCutOracle(unit flowcell.Unit, own ...netip.Addr) *cutOracle {
	return &cutOracle{own: own, unit: unit, flows: make(map[flowcell.FiveTuple]*cutFlow)}
}

// number returns the packet that leaves for one that is encapsulated; left is what
// did, nil if it is not known. steps says which flowcell of its flow it belongs to, nil if
// only the number does.
func (o *cutOracle) number(packet []byte, segments int, left []byte) (out []byte, steps *uint64) {
	var p flowcell.Packet
	if o == nil || !slices.Contains(o.own, netip.AddrFrom4([4]byte(packet[12:]))) ||
		!numbered(packet) || p.Parse(packet) != nil || p.IsPureACK() {
		return packet, nil
	}
	var seen flowcell.Number
	if len(left) >= 20 {
		seen = flowcell.Number(binary.BigEndian.Uint16(left[4:]))
	}
	var n flowcell.Number
	f := o.flows[p.Flow]
	switch {
	case p.Payload > 0:
		if f == nil {
			f = &cutFlow{cutter: flowcell.NewCutter(tcpHash(packet) >> 30)}
			f.steps = tcpHash(packet)>>30%flowcell.Cells - 1
			o.flows[p.Flow] = f
		}
		n = o.data(f, &p, packet, segments, seen)
		steps = &f.steps
	default:
		var recent bool
		if n, recent = o.edge(f, seen); recent {
			steps = &f.steps
		}
	}
	packet = slices.Clone(packet)
	n.Stamp(packet)
	return packet, steps
}

// data numbers a packet of data.
func (o *cutOracle) data(f *cutFlow, p *flowcell.Packet, packet []byte, segments int, seen flowcell.Number) flowcell.Number {
	pauses := []time.Duration{0, time.Hour}
	if o.last != nil {
		last := o.last(packet)
		pauses = []time.Duration{time.Duration(last-f.tick) * tick}
		f.tick = last
	}
	for i, pause := range pauses {
		cutter := f.cutter
		n, begins := cutter.Next(o.unit, p.Seq, int(p.Payload), segments, f.at+pause)
		if i < len(pauses)-1 && n != seen {
			continue
		}
		f.cutter, f.at = cutter, f.at+pause
		if begins {
			o.cells++
			f.steps++
		}
		return n
	}
	panic("no pause")
}

// edge numbers what begins or ends a connection without payload: as the data
// before, if that was just now (recent); else anyhow, but for the index.
func (o *cutOracle) edge(f *cutFlow, seen flowcell.Number) (n flowcell.Number, recent bool) {
	if f == nil {
		return seen &^ 63, false
	}
	last, _ := f.cutter.Edge(f.at)
	if seen == last || o.now != nil && time.Duration(o.now()-f.tick)*tick <= flowcell.LeastTimeout {
		return last, true
	}
	return seen &^ 63, false
}

// end tells of another table.
func (o *cutOracle) end() {
	for _, f := range o.flows {
		f.cutter.End()
	}
}

// counts are SprayStats.Flows and Flowcells.
func (o *cutOracle) counts() (flows, cells uint64) {
	if o == nil {
		return 0, 0
	}
	return uint64(len(o.flows)), o.cells
}
