//go:build !linux

package papers

import "runtime"

func resetPeakMemory() bool { return false }

// peakMemory is what Go has from the system, which it hardly ever gives back.
func peakMemory() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys)
}
