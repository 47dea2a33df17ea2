package kerneltest

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// OnTime calls try until it finds nothing wrong, a few times: who is busy elsewhere
// serves queues late, and what was seen of them then says nothing. If the processors
// were, all the time, the test is skipped.
func OnTime(t *testing.T, try func() (wrong string)) {
	t.Helper()
	before, wrong := cpuTimes(t), ""
	for range 5 {
		if wrong = try(); wrong == "" {
			return
		}
		t.Log(wrong)
	}
	if idle, stolen := cpuTimes(t).since(before); idle < 0.3 || stolen > 0.01 {
		t.Skipf("%s; the processors were idle %.0f %% of the time, and away %.0f %%: try when the machine has time", wrong, 100*idle, 100*stolen)
	}
	t.Error(wrong)
}

// Idle returns what says which share of the time since then the processors were idle.
func Idle(t testing.TB) (since func() float64) {
	t.Helper()
	before := cpuTimes(t)
	return func() float64 {
		idle, _ := cpuTimes(t).since(before)
		return idle
	}
}

// processors is what they did, in ticks.
type processors struct{ all, idle, stolen float64 }

func cpuTimes(t testing.TB) (p processors) {
	t.Helper()
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(b), "\n")
	for i, f := range strings.Fields(first) {
		n, err := strconv.ParseFloat(f, 64)
		switch {
		case i == 0: // cpu
			continue
		case err != nil:
			t.Fatalf("/proc/stat: %q", first)
		case i == 4 || i == 5: // waiting for a disk is idle, too
			p.idle += n
		case i == 8:
			p.stolen = n
		}
		if i <= 8 { // guests are counted twice
			p.all += n
		}
	}
	return p
}

// since returns shares of the time since before.
func (p processors) since(before processors) (idle, stolen float64) {
	all := max(p.all-before.all, 1)
	return (p.idle - before.idle) / all, (p.stolen - before.stolen) / all
}
