package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// LockedError is the error of LockFile if another process holds the lock.
type LockedError struct{ Process string }

func (e LockedError) Error() string { return "in use by process " + e.Process }

// LockFile takes the lock of a file, which it makes if it is missing, and writes the
// process's number there. directory makes the file's directory. The lock ends when the
// file is closed, by the kernel if the process ends, or when its owner removes the file;
// the owner may then remove the directory. A LockedError names the process that has
// the lock.
func LockFile(name string, directory func() error) (*os.File, error) {
	for tries := 0; ; tries++ {
		err := directory()
		if errors.Is(err, fs.ErrExist) && tries < 100 {
			continue // os.MkdirAll found it, and then it was removed
		}
		if err != nil {
			return nil, err
		}
		f, err := lockFile(name)
		if f != nil || err != nil {
			return f, err
		}
	}
}

// lockFile returns nil without an error if the file or its directory is removed
// meanwhile.
func lockFile(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, Explain(err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		owner, _ := os.ReadFile(name)
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, LockedError{strings.TrimSpace(string(owner))}
		}
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	if !isFile(f, name) {
		f.Close()
		return nil, nil
	}
	if err := f.Truncate(0); err == nil {
		f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0) // for LockedError only
	}
	return f, nil
}

// isFile reports whether a name still is that of an open file.
func isFile(f *os.File, name string) bool {
	a, err := f.Stat()
	b, err2 := os.Stat(name)
	return err == nil && err2 == nil && os.SameFile(a, b)
}

// RemoveRunDirs removes a directory in RunDir and RunDir itself, each if it is empty.
func RemoveRunDirs(dir string) {
	if filepath.Clean(dir) == RunDir || unix.Rmdir(dir) == nil {
		unix.Rmdir(RunDir)
	}
}
