package spray

import (
	"time"

	"weft/topology"
)

// cellTables are the flow tables of switches that send each flowcell by one path. An
// entry has the number of the current flowcell; a packet with another number begins the
// next one (Luopan §3.2). Packets without a number, such as acknowledgements, are cut by
// bytes on the wire.
type cellTables struct {
	flowTables
	bytes int32 // of a flowcell that they cut
}

func newCellTables(s *shape, bytes int) cellTables {
	return cellTables{newFlowTables(s), int32(bytes)}
}

// of returns the entry of a packet's flow, and whether a flowcell begins with the
// packet: then the entry's port means nothing, and is to be set by begin.
func (t *cellTables) of(sw topology.NodeID, p *Packet, now time.Duration) (e *flowEntry, begins bool) {
	e, known := t.get(sw, p.Hash)
	e.used = int64(now)
	if p.Numbered {
		return e, !known || e.cell != p.Number.Cell()
	}
	e.left -= p.Bytes
	return e, !known || e.left < 0
}

// begin has what follows take a port, from p on.
func (t *cellTables) begin(e *flowEntry, p *Packet, port int16) {
	e.cell, e.left, e.port = p.Number.Cell(), t.bytes-p.Bytes, port
}
