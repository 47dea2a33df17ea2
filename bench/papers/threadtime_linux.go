package papers

import (
	"syscall"
	"time"
)

// threadTime is what the calling thread has used, in its own code and the kernel's.
func threadTime() time.Duration { return used(syscall.RUSAGE_THREAD) }
