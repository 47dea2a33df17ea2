package throughput

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// otherSeconds is the processor time so far of all processes but ours, and of their
// children that have ended. So it is the machine's other work. The kernel's own threads
// do not count, since they work for us as well. An interrupt may be charged to the
// process that it interrupted; the error is small.
func otherSeconds(ours []int) (float64, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	ticks := 0.0
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || slices.Contains(ours, pid) {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil { // it has ended, and its time is with its parent
			continue
		}
		t, err := processTicks(string(b))
		if err != nil {
			return 0, fmt.Errorf("%s/stat: %w", dir, err)
		}
		ticks += t
	}
	return ticks / userHZ, nil
}

// kernelThread is PF_KTHREAD (linux/sched.h).
const kernelThread = 0x00200000

// processTicks reads utime, stime, cutime and cstime of /proc/PID/stat, see
// proc_pid_stat(5): 0 for a thread of the kernel.
func processTicks(stat string) (sum float64, err error) {
	// The name, in parentheses, may have anything in it.
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	const state, flags, utime, cstime = 3, 9, 14, 17 // as the manual counts
	if len(fields) <= cstime-state {
		return 0, fmt.Errorf("%d fields behind the name", len(fields))
	}
	f, err := strconv.ParseUint(fields[flags-state], 10, 64)
	if err != nil || f&kernelThread != 0 {
		return 0, err
	}
	for _, s := range fields[utime-state : cstime-state+1] {
		n, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}
