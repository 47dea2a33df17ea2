package scheduling

import (
	"weft/hedera/wire"
	"weft/internal/elephant"
)

// shown bounds the flows of each list in a Status.
const shown = 32

// Status is what a Node has done.
type Status struct {
	wire.ClientStatus
	Readings  uint64 `json:"readings"`
	Counted   int    `json:"counted"`   // flows, in the latest reading
	Foreign   int    `json:"foreign"`   // of these, those from addresses of no host of this node
	Elephants int    `json:"elephants"` // of these that are of this node's hosts
	LeftOut   int    `json:"left_out"`  // of these, those that were too many for a report
	Evicted   uint64 `json:"evicted"`   // flows that the program has forgotten for others

	Largest []Elephant `json:"largest"` // of the elephants, 32 at most

	Pins        int      `json:"pins"`
	Pinned      []Pinned `json:"pinned"` // flows, 32 at most
	Set         uint64   `json:"set"`    // pins, each time that one was made or renewed
	Expired     uint64   `json:"expired"`
	Refused     uint64   `json:"refused"` // placements that are no good, or for which there is no room
	Unknown     uint64   `json:"unknown"` // placements by a path that this node does not have
	LastRefused string   `json:"last_refused,omitempty"`

	Loops   uint64    `json:"loops"`   // flows that were placed after they had been reported; renewals are none
	LoopsMS []float64 `json:"loop_ms"` // of the latest of these, 64 at most: from the first report until the placement was in force

	Program elephant.ProgramStats `json:"program"`
	Error   string                `json:"error,omitempty"` // why the program cannot be read or told
}

// Elephant is a flow above its share of the link.
type Elephant struct {
	Flow string  `json:"flow"`
	Mbit float64 `json:"mbit"`
}

// Pinned is a flow with a path.
type Pinned struct {
	Flow string  `json:"flow"`
	Path int     `json:"path"`
	Via  string  `json:"via"`
	For  float64 `json:"for_s"` // seconds that are left
}

// Status returns what has been done. program are the counters of the program.
func (n *Node) Status(program elephant.ProgramStats) *Status {
	n.mu.Lock()
	defer n.mu.Unlock()
	s, p := n.detector.Stats(), n.pins.Stats()
	out := &Status{ClientStatus: n.client.Status(), Readings: s.Readings, Counted: s.Flows, Foreign: s.Foreign, Elephants: s.Elephants, LeftOut: s.LeftOut,
		Largest: []Elephant{}, Pins: n.pins.Len(), Pinned: []Pinned{}, Set: p.Set, Expired: p.Expired, Refused: p.Refused,
		Loops: n.loops.count, LoopsMS: n.loops.milliseconds(),
		Unknown: n.unknown, LastRefused: n.refused, Program: program, Error: n.trouble}
	if program.Counted > uint64(s.Flows) {
		out.Evicted = program.Counted - uint64(s.Flows)
	}
	for _, e := range n.reported[:min(len(n.reported), shown)] {
		out.Largest = append(out.Largest, Elephant{e.Flow.String(), e.Bits / 1e6})
	}
	now, _ := n.cfg.Now() // it has not failed before
	for _, pin := range n.pins.List() {
		if len(out.Pinned) < shown {
			out.Pinned = append(out.Pinned, Pinned{pin.Flow.String(), pin.Path, pin.Via.String(), (pin.Until - now).Seconds()})
		}
	}
	return out
}
