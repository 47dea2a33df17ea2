package fabric

import (
	"weft/internal/balance"
	"weft/internal/elephant"
)

// ElephantStats is what the programs have done for a scheduler of large flows, since they were
// attached.
type ElephantStats struct {
	Counted  uint64 `json:"counted"`  // flows that began to be counted
	Pinned   uint64 `json:"pinned"`   // packets that went by their flow's pin
	Unpinned uint64 `json:"unpinned"` // packets of a pin that has expired, or whose port is no next hop: by the rule
}

// PortPin pins a flow to a port of a switch.
type PortPin struct {
	Flow  elephant.Flow
	Port  string
	Until uint64 // ns of the kernel's monotonic clock
}

// Schedulable reports whether flows can be pinned under a rule: under one by which the kernel's
// multipath routes heed a packet's hash.
func Schedulable(rule string) bool {
	r, err := balance.Parse(rule)
	return err == nil && (r.Kind == balance.ECMP || r.ByProgram() && !r.AtLeaf())
}
