package switchd

import (
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// processTime is the processor time of this process so far.
func processTime(t testing.TB) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// What the agents of a whole fabric cost while nothing happens. It measures, and
// so runs only when asked to: WEFT_MEASURE=1.
func TestAgents_costAtRest(t *testing.T) {
	if os.Getenv("WEFT_MEASURE") == "" {
		t.Skip("measures for 5 s; set WEFT_MEASURE=1")
	}
	l := upLab(t, "m", "fat-tree:k=4")
	l.start(fast)
	l.adjacent()
	for _, c := range []struct {
		name string
		for_ time.Duration
	}{{"settling", time.Second}, {"at rest", 5 * time.Second}} {
		before, start := processTime(t), time.Now()
		time.Sleep(c.for_)
		took := time.Since(start)
		used := processTime(t) - before
		t.Logf("%s: 20 agents, hellos every %v: %.1f %% of one processor, %d goroutines", c.name, fast.Hello, 100*used.Seconds()/took.Seconds(), runtime.NumGoroutine())
	}
	var sent, received uint64
	for _, a := range l.agents {
		for _, p := range a.ports.Stats().Ports {
			sent, received = sent+p.Sent, received+p.Received
		}
	}
	t.Logf("%d messages sent, %d received", sent, received)
}
