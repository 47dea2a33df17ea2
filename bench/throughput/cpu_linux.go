package throughput

import (
	"fmt"
	"os"
)

// cpuTimes is the machine's processor time so far, in seconds.
type cpuTimes struct{ busy, idle, steal float64 }

// userHZ is the unit of /proc/stat, which is the same on every machine
// (time(7)).
const userHZ = 100

func readCPU() (t cpuTimes, err error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return t, err
	}
	var user, nice, system, idle, iowait, irq, softirq, steal float64
	if _, err := fmt.Sscanf(string(b), "cpu %f %f %f %f %f %f %f %f",
		&user, &nice, &system, &idle, &iowait, &irq, &softirq, &steal); err != nil {
		return t, fmt.Errorf("/proc/stat: %w", err)
	}
	return cpuTimes{
		busy:  (user + nice + system + irq + softirq) / userHZ,
		idle:  (idle + iowait) / userHZ,
		steal: steal / userHZ,
	}, nil
}

func (t cpuTimes) since(u cpuTimes) cpuTimes {
	return cpuTimes{t.busy - u.busy, t.idle - u.idle, t.steal - u.steal}
}

// percent is how much x is of all processors' time.
func (t cpuTimes) percent(x float64) float64 { return 100 * ratio(x, t.busy+t.idle+t.steal) }
