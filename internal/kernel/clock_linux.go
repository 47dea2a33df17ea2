package kernel

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Monotonic is the clock that bpf_ktime_get_ns reads, in nanoseconds.
func Monotonic() (uint64, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0, fmt.Errorf("clock: %w", err)
	}
	return uint64(t.Nano()), nil
}
