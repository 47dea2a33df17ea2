package hostsetup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"weft/internal/kernel"
)

// lockFile is the lock's name in the directory of Dir.
const lockFile = "lock"

// Lock is the right to set up the host and to attach programs to its uplink. One
// process has it in a network namespace, a daemon or a program with a Host of its own:
// two would replace each other's programs, and a clean-up would take them for
// leftovers. The kernel lets go of it when the process ends.
type Lock struct {
	file *os.File
	dir  string
}

// TakeLock takes the Lock of the calling thread's network namespace. The error names
// the process that has it.
func TakeLock() (*Lock, error) {
	for {
		dir, err := MakeDir(-1, -1)
		if err != nil {
			return nil, err
		}
		l, err := lockIn(dir)
		if l != nil || err != nil {
			return l, err
		}
	}
}

// lockIn takes the lock in a directory. It returns nil without an error if the former
// owner has removed the file or the directory meanwhile.
func lockIn(dir string) (*Lock, error) {
	name := filepath.Join(dir, lockFile)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, kernel.Explain(fmt.Errorf("lock the host's set-up: %w", err))
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		owner, _ := os.ReadFile(name)
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("this network namespace is in use by weft, process %s: stop that first", strings.TrimSpace(string(owner)))
		}
		return nil, fmt.Errorf("lock the host's set-up: %w", err)
	}
	if !kernel.IsFile(f, name) {
		f.Close()
		return nil, nil
	}
	if err := f.Truncate(0); err == nil {
		f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0) // for the message above only
	}
	return &Lock{f, dir}, nil
}

// Release lets go of the lock. What is in the directory stays.
func (l *Lock) Release() { l.file.Close() }

// Remove removes the lock, files in its directory by their names, and the directories
// that are empty then, and lets go of the lock. A directory that root has given to this
// user stays.
func (l *Lock) Remove(files ...string) {
	for _, name := range append(files, lockFile) {
		os.Remove(filepath.Join(l.dir, name))
	}
	if unix.Rmdir(l.dir) == nil {
		unix.Rmdir(kernel.RunDir)
	}
	l.file.Close()
}
