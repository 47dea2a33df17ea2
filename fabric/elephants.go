package fabric

import (
	"weft/internal/balance"
	"weft/internal/elephant"
)

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
