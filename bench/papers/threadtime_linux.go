package papers

import (
	"syscall"
	"time"
)

// threadTime is what the calling thread has used, in its own code and the kernel's.
func threadTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_THREAD, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
