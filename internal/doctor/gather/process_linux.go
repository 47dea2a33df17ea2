package gather

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"weft/internal/hostsetup"
)

// process finds the daemon that has the lock of a directory, whether it answers or not. The file
// has the process's number; what the process has open says whether it is held. Where that cannot
// be seen, it is not known whether a daemon runs.
func (l *looker) process(dir string) {
	d := &l.f.Daemon
	lock := filepath.Join(dir, "lock")
	text, err := os.ReadFile(lock)
	pid := 0
	if err == nil {
		if n, bad := strconv.Atoi(strings.TrimSpace(string(text))); bad == nil {
			pid = n
		}
	}
	held := false
	if pid > 0 {
		held, err = holds(pid, lock)
	}
	switch {
	case held:
		d.Process, d.Stopped = pid, strings.ContainsRune("Tt", state(pid))
	case err == nil, errors.Is(err, fs.ErrNotExist):
		d.Leftover = exists(filepath.Join(dir, "state.json")) || pid > 0 && exists(filepath.Join(dir, hostsetup.StatusSocket))
	default:
		l.f.Unknown["daemon"] = "whether one runs cannot be seen: " + err.Error()
	}
}

// holds reports whether a process has a file open, as one that has its lock does.
func holds(pid int, file string) (bool, error) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	fds, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, fd := range fds {
		if to, err := os.Readlink(filepath.Join(dir, fd.Name())); err == nil && to == file {
			return true, nil
		} else if errors.Is(err, fs.ErrPermission) {
			return false, err
		}
	}
	return false, nil
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
