package live

import "context"

// Source is where a picture comes from. Its methods are called by one goroutine at a time.
type Source interface {
	// Fabric returns what there is now, of which the next Sample is. The caller does not change
	// it. It is the same pointer as long as Version is the same.
	Fabric(ctx context.Context) (*Fabric, error)
	// Sample counts. An error means that nothing is known; Sample.Trouble is for what is not
	// known of some.
	Sample(ctx context.Context) (Sample, error)
	// Paths returns the paths between two nodes of the latest Fabric, by their positions, whatever
	// has failed. It may be called beside the others.
	Paths(from, to int) []Path
	// Close gives back what the source holds.
	Close() error
}

// Breaker is a Source that makes links and nodes fail and heals them. Its methods may be called
// beside the others.
type Breaker interface {
	// Fail makes a link or a node fail, by its name, in a mode of Modes.
	Fail(target, mode string) error
	// Heal heals it; "" is all that has failed.
	Heal(target string) error
	// Modes are the ways to fail, the most usual first.
	Modes() []string
}
