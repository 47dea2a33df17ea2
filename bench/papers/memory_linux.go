package papers

import (
	"bytes"
	"os"
	"strconv"
)

// resetPeakMemory makes the peak begin anew, which not every kernel allows.
func resetPeakMemory() bool {
	return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) == nil
}

// peakMemory is the most that was resident, in bytes; 0: unknown.
func peakMemory() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(status) {
		if value, ok := bytes.CutPrefix(line, []byte("VmHWM:")); ok {
			value = bytes.TrimSuffix(bytes.TrimSpace(value), []byte(" kB"))
			kB, _ := strconv.ParseInt(string(value), 10, 64)
			return kB << 10
		}
	}
	return 0
}
