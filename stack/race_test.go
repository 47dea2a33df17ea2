//go:build race

package stack

// raced: the race detector is on, under which a sync.Pool loses what it is given
// at random, and no two footprints are alike.
const raced = true
