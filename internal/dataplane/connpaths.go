package dataplane

import (
	"slices"
	"time"

	"weft/flowcell"
)

const (
	// maxCounted is the number of connections whose packets are counted by path at once. Above,
	// one idle longest is forgotten.
	maxCounted = 1 << 14
	// MaxConnPaths is how many paths of a connection are counted each by itself; the others are
	// counted together. Counts of all connections take 15 MB at most.
	MaxConnPaths = 16
)

// connPaths counts packets of each connection by path. It belongs to egress and is guarded by
// its lock. The methods of nil do nothing.
type connPaths struct {
	flows *flowcell.Table[connUse]
}

// connUse is what a connection has sent.
type connUse struct {
	paths []connPath // each once; at most MaxConnPaths
	rest  PathStats  // by no path, and by all others
}

// connPath is what it has sent by a path.
type connPath struct {
	pathKey
	packets, bytes uint64
}

// CountConnections has an egress count what each TCP connection sends by each path, which costs a
// look at a table for each packet. It must be called before packets are sent.
func (e *Egress) CountConnections() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.conns = &connPaths{flowcell.NewTable[connUse](flowcell.TableConfig[connUse]{Capacity: maxCounted, Seed: e.seed})}
	e.timed = true
}

// ConnectionPaths returns what a connection has sent by each path, in the order of the bouncing
// switches' addresses, or the Underlay's numbers; and what it has sent without an outer header, by
// paths that the device chose, and by paths above MaxConnPaths. It is empty without
// CountConnections, and if the connection was forgotten.
func (e *Egress) ConnectionPaths(flow flowcell.FiveTuple) (paths []PathStats, rest PathStats) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conns == nil {
		return nil, rest
	}
	use := e.conns.flows.Get(&flow, e.now())
	if use == nil {
		return nil, rest
	}
	for _, p := range use.paths {
		paths = append(paths, PathStats{Bounce: p.bounce, Path: p.path, Packets: p.packets, Bytes: p.bytes})
	}
	slices.SortFunc(paths, func(a, b PathStats) int { return pathKey{a.Bounce, a.Path}.compare(pathKey{b.Bounce, b.Path}) })
	return paths, use.rest
}

// count counts packets; via is nil where they go without an outer header, or the device chooses
// the path.
func (c *connPaths) count(pkt *flowcell.Packet, via *pathOut, packets, bytes uint64, now time.Duration) {
	if c == nil || !pkt.IsTCP() {
		return
	}
	use, _ := c.flows.Use(&pkt.Flow, now)
	if pkt.Flags&flowcell.FlagSYN != 0 { // the ports may have been another connection's
		use.paths, use.rest = use.paths[:0], PathStats{}
	}
	if via != nil {
		k := pathKey{bounce: via.bounce}
		if !k.bounce.IsValid() {
			k.path = via.index // in a tunnel
		}
		i := slices.IndexFunc(use.paths, func(p connPath) bool { return p.pathKey == k })
		if i < 0 && len(use.paths) < MaxConnPaths {
			i = len(use.paths)
			use.paths = append(use.paths, connPath{pathKey: k})
		}
		if i >= 0 {
			use.paths[i].packets += packets
			use.paths[i].bytes += bytes
			return
		}
	}
	use.rest.Packets += packets
	use.rest.Bytes += bytes
}
