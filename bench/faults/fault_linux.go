package faults

import "weft/bench/named"

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
}

// Select returns the faults with names, all if there are none.
func Select(names []string) ([]Fault, error) {
	return named.Keep("fault", All(), func(f Fault) string { return f.Name }, names)
}
