//go:build unix

package papers

import (
	"syscall"
	"time"
)

// cpuTime is what the process has used, in its own code and the kernel's.
func cpuTime() time.Duration {
	return used(syscall.RUSAGE_SELF)
}

// used is the processor time of the process or of the calling thread; 0 if the system does not say.
func used(who int) time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(who, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
