//go:build !linux

package papers

import "time"

// threadTime is unknown: this system does not tell a thread's time.
func threadTime() time.Duration { return 0 }
