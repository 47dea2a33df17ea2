package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// counters are those that a process of weft bench throughput reports.
type counters struct {
	Mallocs  uint64 `json:"mallocs"`
	CPUNanos int64  `json:"cpu_ns"`
	Children []int  `json:"children"` // processes whose time is in cpu_ns
	Error    string `json:"error,omitempty"`
}

// answer replies with the counters to every line of standard input, until it ends.
func answer(d *daemon, o options) error {
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(counters{}); err != nil { // ready
		return err
	}
	profiled := make(chan error, 1)
	asked := 0
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var c counters
		err := error(nil)
		if in.Text() == "count" {
			if asked++; asked == 1 && o.profile != "" {
				go func() { profiled <- profile(o.profile, o.seconds) }()
			}
			c, err = count(d, o)
		}
		if err != nil {
			c.Error = d.explain(err).Error()
		}
		if err := out.Encode(c); err != nil {
			return err
		}
	}
	if asked > 0 && o.profile != "" {
		return <-profiled
	}
	return nil
}

// questionLimit is more than tailscaled takes to answer, on a busy machine.
const questionLimit = 15 * time.Second

// count reads the counters, and fails unless packets go directly.
func count(d *daemon, o options) (c counters, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), questionLimit)
	defer cancel()
	if err := d.direct(ctx, o.peer); err != nil {
		return c, err
	}
	c.Children = []int{d.cmd.Process.Pid}
	if c.Mallocs, err = d.mallocs(ctx); err != nil {
		return c, err
	}
	for _, pid := range []int{os.Getpid(), d.cmd.Process.Pid} {
		t, err := processorTime(pid)
		if err != nil {
			return c, fmt.Errorf("processor time of process %d: %w", pid, err)
		}
		c.CPUNanos += t.Nanoseconds()
	}
	return c, nil
}

// processorTime is what a process has used so far, with all its threads.
func processorTime(pid int) (time.Duration, error) {
	// What clock_getcpuclockid(3) returns: the scheduler's clock (2) of a process.
	const scheduler = 2
	var t unix.Timespec
	err := unix.ClockGettime(int32(^pid)<<3|scheduler, &t)
	return time.Duration(t.Nano()), err
}

// mallocs is how many objects tailscaled has allocated so far.
func (d *daemon) mallocs(ctx context.Context) (uint64, error) {
	text, err := debug(ctx, "metrics")
	if err != nil {
		return 0, err
	}
	return metric(string(text), "memstats_mallocs")
}

// metric finds a counter in Prometheus's text.
func metric(text, name string) (uint64, error) {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strconv.ParseUint(strings.TrimSpace(value), 10, 64)
		}
	}
	return 0, fmt.Errorf("tailscaled's metrics have no %s", name)
}

// profile writes a profile of so many seconds from now on.
func profile(file string, seconds int) error {
	b, err := debug(context.Background(), fmt.Sprintf("pprof/profile?seconds=%d", seconds))
	if err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o644)
}

// debug asks tailscaled's server for people who debug it.
func debug(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+debugAddress+"/debug/"+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("tailscaled's %s: %s", path, response.Status)
	}
	return io.ReadAll(response.Body)
}
