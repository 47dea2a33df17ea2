package liveness

import (
	"os"
	"runtime/debug"
	"testing"
)

// Simulations make much that is soon garbage and keep little: so it is collected rarely.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}
