//go:build !unix

package papers

import "time"

// cpuTime is unknown here.
func cpuTime() time.Duration { return 0 }
