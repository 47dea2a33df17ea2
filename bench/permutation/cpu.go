package permutation

import (
	"fmt"
	"os"
)

// cpuTimes is the machine's processor time so far, in ticks of the kernel.
type cpuTimes struct{ idle, total float64 }

// readCPU reads /proc/stat; where there is none, the result is zero.
func readCPU() (t cpuTimes) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return t
	}
	var v [8]float64 // user nice system idle iowait irq softirq steal
	fmt.Sscanf(string(b), "cpu %f %f %f %f %f %f %f %f", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7])
	for _, x := range v {
		t.total += x
	}
	t.idle = v[3] + v[4]
	return t
}

func idlePercent(a, b cpuTimes) float64 {
	if b.total <= a.total {
		return -1
	}
	return 100 * (b.idle - a.idle) / (b.total - a.total)
}
