// Package policy is a table: a policy is a unit (when to choose a path again)
// times a rule (which one). A new scheme is a new row.
package policy

import (
	"fmt"
	"strings"

	"weft/drb"
	"weft/flowcell"
)

// Policy is one row.
type Policy struct {
	Name   string
	Unit   flowcell.Unit
	Rule   drb.Rule
	Source string // where it comes from
}

// PerFlow is how traffic that must not be reordered is spread: one path per
// flow, whatever the policy of the rest.
var PerFlow = Policy{"ecmp", flowcell.UnitFlow, drb.Hash, "baseline"}

var table = []Policy{
	PerFlow,
	{"rb", flowcell.UnitPacket, drb.Random, "DRB §3.1.2"},
	{"rrb", flowcell.UnitPacket, drb.RoundRobin, "DRB §3.1.2"},
	{"drb", flowcell.UnitPacket, drb.DigitReversal, "DRB §3.1.2"},
}

// Default is the policy of those who name none.
const Default = "drb"

// Get finds a policy by name.
func Get(name string) (Policy, error) {
	for _, p := range table {
		if p.Name == name {
			return p, nil
		}
	}
	return Policy{}, fmt.Errorf("policy %q: unknown; known: %s", name, strings.Join(Names(), ", "))
}

// Names lists the policies in the order of the table.
func Names() []string {
	names := make([]string, len(table))
	for i, p := range table {
		names[i] = p.Name
	}
	return names
}

// Sprays reports whether packets of one flow may take different paths, so that
// the receiver must put them back in order.
func (p Policy) Sprays() bool { return p.Unit != flowcell.UnitFlow }
