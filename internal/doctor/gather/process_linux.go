package gather

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"weft/internal/hostsetup"
)

// process finds the daemon that has the lock of a directory, though it does not answer. The file
// has the process's number; the kernel's list of locks says whether it is held.
func (l *looker) process(dir string) {
	d := &l.f.Daemon
	lock := filepath.Join(dir, "lock")
	text, err := os.ReadFile(lock)
	if err != nil {
		d.Leftover = exists(filepath.Join(dir, "state.json"))
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || !holds(pid, lock) {
		d.Leftover = exists(filepath.Join(dir, hostsetup.StatusSocket)) || exists(filepath.Join(dir, "state.json"))
		return
	}
	d.Process = pid
	d.Stopped = strings.ContainsRune("Tt", state(pid))
}

// holds reports whether a process has a file open, as one that has its lock does.
func holds(pid int, file string) bool {
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		return false
	}
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && to == file {
			return true
		}
	}
	return false
}

// state is the kernel's letter for a process's state, such as T for stopped.
func state(pid int) rune {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 'X'
	}
	// The name before it is in parentheses, and may have some in it.
	if i := strings.LastIndex(string(text), ") "); i >= 0 && i+2 < len(text) {
		return rune(text[i+2])
	}
	return 'X'
}

// configOf is the configuration file that a process was started with, "" if that is not seen.
func configOf(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	args := strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")
	daemon := false
	file := ""
	for i, a := range args {
		name, value, has := strings.Cut(a, "=")
		switch {
		case a == "host" || a == "switch":
			daemon = true
		case name != "--config" && name != "-config":
		case has:
			file = value
		case i+1 < len(args):
			file = args[i+1]
		}
	}
	if !daemon || file == "" || filepath.IsAbs(file) {
		return file
	}
	dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil {
		return ""
	}
	return filepath.Join(dir, file)
}
