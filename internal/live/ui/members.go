package ui

import (
	"cmp"
	"slices"
)

// sortMembers puts those with most to tell first.
func sortMembers(all []member) {
	drops := func(m *member) uint64 { return m.Up.Drops + m.Down.Drops }
	use := func(m *member) float64 { return max(m.Up.Use, m.Down.Use) }
	slices.SortStableFunc(all, func(a, b member) int {
		return cmp.Or(cmp.Compare(b.State, a.State), cmp.Compare(drops(&b), drops(&a)), cmp.Compare(use(&b), use(&a)), cmp.Compare(b.Busier().Rate, a.Busier().Rate))
	})
}
