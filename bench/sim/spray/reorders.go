package spray

import "weft/policy"

// Reorders reports whether packets of a flow may take several paths at once, by the name of a
// policy of hosts or of a model of switches. Where they may not, a hole in a flow is a loss,
// and a resequencer that holds what is behind it only delays what TCP does about it.
func Reorders(name string) bool {
	switch name {
	case switchECMP, switchWCMP, switchDrillFlow:
		return false
	}
	p, err := policy.New(name, policy.Options{})
	return err != nil || p.Sprays()
}
