//go:build race

package daemon

// raced: the race detector takes memory.
const raced = true
