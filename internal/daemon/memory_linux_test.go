package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"weft/internal/slowtest"
)

// memoryGroup makes a control group with a limit, of whichever version the machine has,
// and returns its directory.
func memoryGroup(t *testing.T, bytes int) string {
	t.Helper()
	var errs []error
	for _, g := range []struct{ top, file string }{
		{"/sys/fs/cgroup", "memory.max"}, {"/sys/fs/cgroup/unified", "memory.max"}, {"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
	} {
		dir := filepath.Join(g.top, fmt.Sprintf("weft-test-%d", os.Getpid()))
		if err := os.Mkdir(dir, 0o755); err != nil {
			errs = append(errs, err)
			continue
		}
		err := writeExisting(filepath.Join(dir, g.file), strconv.Itoa(bytes))
		if err == nil {
			t.Cleanup(func() {
				if err := os.Remove(dir); err != nil {
					t.Error(err)
				}
			})
			return dir
		}
		errs = append(errs, err, os.Remove(dir))
	}
	t.Skipf("no control group with a limit of memory can be made here: %v", errors.Join(errs...))
	return ""
}

// writeExisting writes to a file that the kernel has made; another file system would let
// anybody make one.
func writeExisting(name, text string) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// A daemon to which its control group allows 32 MB lives in that under load: it collects
// garbage in time, and its connections lose nothing. Since Linux 6.17 the group pays for what
// the verifier remembers of the program that sprays, while the kernel loads it: 8 MB, beside 10 MB
// of the daemon's and 7 MB of tables. The race detector takes ten times as much.
func TestRun_memoryLimit(t *testing.T) {
	slowtest.Unraced(t)
	const limit = leastMemory
	n := sharedNetwork(t)
	group := memoryGroup(t, limit)
	config := "policy: drb\n" // by which all of both directions passes through the daemon
	limited := n.start("h0.0.2", config, childGroup+"="+group, childVitals+"=1")
	n.start("h3.1.3", config)
	t.Cleanup(func() { // before the group's end
		limited.cmd.Process.Kill()
		<-limited.exited
	})
	var asked atomic.Int64
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range 2 { // whose answers are garbage at once
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					limited.status()
					asked.Add(1)
				}
			}
		})
	}
	var pairs []*pair
	for i := range 200 {
		ends := [][2]string{{"h0.0.2", "h3.1.3"}, {"h3.1.3", "h0.0.2"}}[i%2]
		pairs = append(pairs, n.connect(ends[0], ends[1]))
	}
	for began := time.Now(); time.Since(began) < 4*time.Second; {
		var large sync.WaitGroup
		for _, p := range pairs[:8] {
			large.Go(func() { p.exchange(300_000) })
		}
		for _, p := range pairs[8:] {
			p.exchange(3000)
		}
		large.Wait()
	}
	v, err := limited.vitals()
	if err != nil {
		t.Fatal(err)
	}
	close(done)
	wg.Wait()
	if want := int64(limit / 5 * 4); v.MemoryLimit != want {
		t.Errorf("the collector's limit is %d bytes, want %d", v.MemoryLimit, want)
	}
	for _, file := range []string{"memory.max_usage_in_bytes", "memory.peak", "memory.failcnt", "memory.oom_control", "memory.events"} {
		if b, err := os.ReadFile(filepath.Join(group, file)); err == nil {
			t.Logf("%s: %s", file, strings.Join(strings.Fields(string(b)), " "))
			for line := range strings.Lines(string(b)) {
				if count, ok := strings.CutPrefix(line, "oom_kill "); ok && strings.TrimSpace(count) != "0" {
					t.Errorf("%s: %s", file, line)
				}
			}
		}
	}
	if want := fmt.Sprintf("the control group allows %d MB of memory", limit>>20); !strings.Contains(limited.messages(), want) {
		t.Errorf("the log does not say that %s", want)
	}
	t.Logf("%d answers; heap of %.1f MB", asked.Load(), float64(v.Heap)/1e6)
	limited.end(syscall.SIGTERM)
}
