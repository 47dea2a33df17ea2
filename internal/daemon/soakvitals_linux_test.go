package daemon

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// sample is what a process has at a moment.
type sample struct {
	at          time.Duration
	process     int
	rss         float64 // MB
	heap        float64 // MB
	goroutines  float64
	threads     float64
	descriptors float64
	bpf         float64 // descriptors of programs and maps
	routes      float64 // of its network namespace, rules included
}

// kinds are the columns of the table, with what may be added from the second quarter of
// a soak to the last one. These are fixed before any soak was run: the median may grow by
// so much of itself, or by so much, whichever is more.
var kinds = []struct {
	name     string
	of       func(s sample) float64
	part     float64
	absolute float64
}{
	{"RSS MB", func(s sample) float64 { return s.rss }, 0.10, 8},
	{"heap MB", func(s sample) float64 { return s.heap }, 0.25, 8}, // between two collections it doubles
	{"goroutines", func(s sample) float64 { return s.goroutines }, 0.05, 2},
	{"threads", func(s sample) float64 { return s.threads }, 0, 3}, // the runtime never ends one
	{"descriptors", func(s sample) float64 { return s.descriptors }, 0, 3},
	{"bpf", func(s sample) float64 { return s.bpf }, 0, 0},
	{"routes", func(s sample) float64 { return s.routes }, 0, 2},
}

// soaked is a process that a soak looks at.
type soaked struct {
	name    string
	child   func() *child
	samples []sample
}

// vitals asks a process of the tests.
func (c *child) vitals() (v vitals, err error) {
	c.n.do(c.node, func() error {
		var conn net.Conn
		if conn, err = net.DialTimeout("unix", vitalsSocket(c.cmd.Process.Pid), 5*time.Second); err != nil {
			return nil
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(time.Minute))
		err = json.NewDecoder(conn).Decode(&v)
		return nil
	})
	return v, err
}

// take takes a sample; false while the process is not there.
func (s *soaked) take(at time.Duration) bool {
	c := s.child()
	v, err := c.vitals()
	if err != nil {
		return false
	}
	x := sample{at: at, process: c.cmd.Process.Pid, goroutines: float64(v.Goroutines), heap: float64(v.Heap) / 1e6}
	dir := fmt.Sprintf("/proc/%d", x.process)
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return false
	}
	for line := range strings.SplitSeq(string(status), "\n") {
		name, value, _ := strings.Cut(line, ":")
		switch name {
		case "VmRSS":
			fmt.Sscan(value, &x.rss)
			x.rss /= 1000
		case "Threads":
			fmt.Sscan(value, &x.threads)
		}
	}
	all, _ := filepath.Glob(dir + "/fd/*")
	for _, name := range all {
		to, err := os.Readlink(name)
		if err != nil {
			continue
		}
		x.descriptors++
		if strings.Contains(to, "bpf") {
			x.bpf++
		}
	}
	if x.descriptors == 0 {
		return false
	}
	fmt.Sscan(c.n.shell(c.node, "(ip rule; ip route show table all; ip -6 route show table all) 2>/dev/null | grep -vc ' cache'"), &x.routes)
	s.samples = append(s.samples, x)
	return true
}

// judge compares the second quarter of a soak with the last, and says what grew.
func (s *soaked) judge(whole time.Duration) (table string, grew []string) {
	quarter := func(i int, of func(sample) float64) (median float64, ok bool) {
		var values []float64
		for _, x := range s.samples {
			if x.at >= whole*time.Duration(i)/4 && x.at < whole*time.Duration(i+1)/4 {
				values = append(values, of(x))
			}
		}
		if len(values) == 0 {
			return 0, false
		}
		slices.Sort(values)
		return values[len(values)/2], true
	}
	for _, k := range kinds {
		var medians [4]float64
		ok := true
		for i := range medians {
			var has bool
			medians[i], has = quarter(i, k.of)
			ok = ok && (has || i == 0)
		}
		verdict := "flat"
		if allowed := max(medians[1]*k.part, k.absolute); !ok {
			verdict = "too few samples"
		} else if medians[3] > medians[1]+allowed {
			verdict = fmt.Sprintf("GREW by more than %.1f", allowed)
		}
		if verdict != "flat" {
			grew = append(grew, fmt.Sprintf("%s of %s: %s", k.name, s.name, verdict))
		}
		table += fmt.Sprintf("%-22s %-12s %9.1f %9.1f %9.1f %9.1f  %s\n", s.name, k.name, medians[0], medians[1], medians[2], medians[3], verdict)
	}
	return table, grew
}
