package service

import (
	"bytes"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// LimitMemory tells Go's garbage collector how much memory the control group allows
// (MemoryMax= of a systemd unit), unless GOMEMLIMIT is set. It returns that limit in bytes,
// 0 if there is none. Without it the collector lets the heap double before it collects, and
// the kernel kills the daemon although most of the heap may be garbage. Call it once, at
// the start.
func LimitMemory() (bytes int64) {
	bytes = memoryLimit("/")
	if bytes > 0 && os.Getenv("GOMEMLIMIT") == "" {
		// The rest is for the program's text and what the kernel counts: buffers of
		// sockets, maps, page tables.
		debug.SetMemoryLimit(bytes / 5 * 4)
	}
	return bytes
}

// memoryLimit returns the least limit of the groups that this process is in, 0 if there is
// none. root is / but in tests.
func memoryLimit(root string) (limit int64) {
	text, err := os.ReadFile(path.Join(root, "proc/self/cgroup"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		// 0::/system.slice/weft-host.service, or with version 1 4:memory:/...
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		file, tops := "", []string(nil)
		switch {
		case fields[0] == "0" && fields[1] == "":
			file, tops = "memory.max", []string{"sys/fs/cgroup", "sys/fs/cgroup/unified"}
		case strings.Contains(","+fields[1]+",", ",memory,"):
			file, tops = "memory.limit_in_bytes", []string{"sys/fs/cgroup/memory"}
		}
		for _, top := range tops {
			for group := path.Clean("/" + fields[2]); ; group = path.Dir(group) {
				if n := readLimit(path.Join(root, top, group, file)); n > 0 && (limit == 0 || n < limit) {
					limit = n
				}
				if group == "/" {
					break
				}
			}
		}
	}
	return limit
}

// readLimit returns a limit, 0 for none. Version 1 has a huge number instead.
func readLimit(name string) int64 {
	b, err := os.ReadFile(name)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64/2 {
		return 0
	}
	return n
}
