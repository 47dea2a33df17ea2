package faults

import (
	"cmp"

	"weft/bench/named"
)

// Fault is something that is broken, and mended again.
type Fault struct {
	Name, What string
	// Node is where the tools are asked; "": at the Bed's Observer.
	Node string
	// Start has the fault exist before the observer's daemon starts. Config is what its
	// configuration has besides the Bed's.
	Start  bool
	Config string
	// Inject breaks it. heal mends it; nil if nothing is to be mended.
	Inject func(b *Bed) (heal func() error, err error)
	Cause  Cause
	// At are the nodes or links of which one has to be named; empty where the fault is at the
	// node that is asked.
	At []string
	// Fabric has the operator ask weft doctor --fabric, too, if nothing else has named the cause
	// by the end.
	Fabric bool
}

// node is where the tools are asked.
func (f *Fault) node() string { return cmp.Or(f.Node, Observer) }

// Select returns the faults with names, all if there are none.
func Select(names []string) ([]Fault, error) {
	return named.Keep("fault", All(), func(f Fault) string { return f.Name }, names)
}
