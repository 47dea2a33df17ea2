package dataplane

import (
	"time"

	"weft/backlog"
	"weft/flowcell"
	"weft/topology"
)

// backlogged chooses by its own backlog: what this Host has sent by each path (DRILL
// §3.2).
type backlogged struct{ table *backlog.Table }

func (b *backlogged) choose(p *pair, _ *flowcell.Packet, paths []int, _ int, now time.Duration) int {
	return b.table.Choose(uint32(p.rack.id), paths, now)
}

func (b *backlogged) sent(p *pair, path, bytes int, now time.Duration) {
	b.table.Sent(uint32(p.rack.id), path, bytes, now)
}

// know adds nothing: Stats.Paths tells as much.
func (b *backlogged) know(time.Duration, func(topology.NodeID, uint32, Congestion)) {}
