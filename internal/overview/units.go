package overview

import (
	"fmt"
	"time"
)

// unknown stands for what is not known.
const unknown = "-"

// milliseconds is a time as people read it; 0 is not known.
func milliseconds(ms float64) string {
	switch {
	case ms <= 0:
		return unknown
	case ms < 10:
		return fmt.Sprintf("%.2f ms", ms)
	case ms < 100:
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.0f ms", ms)
}

// percent is a share as people read it.
func percent(share float64) string {
	switch {
	case share == 0:
		return "0 %"
	case share < 0.001:
		return "<0.1 %"
	case share < 0.0995:
		return fmt.Sprintf("%.1f %%", 100*share)
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}

// rate is an amount of bytes in a time, as bit/s.
func rate(bytes uint64, in time.Duration) string {
	bits := float64(bytes) * 8 / in.Seconds()
	switch {
	case bits >= 999.5e6:
		return fmt.Sprintf("%.2f Gbit/s", bits/1e9)
	case bits >= 999.5e3:
		return fmt.Sprintf("%.1f Mbit/s", bits/1e6)
	}
	return fmt.Sprintf("%.0f kbit/s", bits/1e3)
}

// size is an amount of bytes.
func size(bytes uint64) string {
	switch {
	case bytes >= 10<<20:
		return fmt.Sprintf("%d MB", bytes>>20)
	case bytes >= 10<<10:
		return fmt.Sprintf("%d KB", bytes>>10)
	}
	return fmt.Sprintf("%d B", bytes)
}

// age is how long something has been so.
func age(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.0f h", d.Hours())
	}
	return fmt.Sprintf("%.0f days", d.Hours()/24)
}

// count is a number of things.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
