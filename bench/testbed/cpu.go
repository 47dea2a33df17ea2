package testbed

import (
	"fmt"
	"os"
	"time"
)

// CPU is the machine's processor time so far, in ticks of the kernel. The zero value
// means unknown.
type CPU struct {
	idle, total float64
	irq         float64 // of total: interrupts, soft ones too, in which kernels forward packets
}

// ReadCPU reads /proc/stat; where there is none, the result is zero.
func ReadCPU() (t CPU) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return t
	}
	var v [8]float64 // user nice system idle iowait irq softirq steal
	fmt.Sscanf(string(b), "cpu %f %f %f %f %f %f %f %f", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7])
	for _, x := range v {
		t.total += x
	}
	t.idle, t.irq = v[3]+v[4], v[5]+v[6]
	return t
}

// ticks are those of /proc/stat in a second.
const ticks = 100

// IdlePercentBeside is IdlePercent where programs of the lowest priority have polled for this
// long: as if the processors had been idle then. Interrupts during it may count as the programs',
// so the time of all interrupts is taken off. The result is too low rather than too high.
func IdlePercentBeside(a, b CPU, polled time.Duration) float64 {
	if b.total <= a.total {
		return -1
	}
	idle := b.idle - a.idle + max(0, polled.Seconds()*ticks-(b.irq-a.irq))
	return min(100, 100*idle/(b.total-a.total))
}

// IdlePercent is the share of the time from a to b in which the processors were idle; -1
// if unknown.
func IdlePercent(a, b CPU) float64 {
	if b.total <= a.total {
		return -1
	}
	return 100 * (b.idle - a.idle) / (b.total - a.total)
}

// CPUBound is the least idle time of the processors, in percent. Below it a measurement
// shows the machine and not the fabric, and comparisons are void.
const CPUBound = 10
