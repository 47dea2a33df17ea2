package hostsetup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

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
	dir, err := Dir()
	if err != nil {
		return nil, err
	}
	f, err := kernel.LockFile(filepath.Join(dir, lockFile), func() error {
		_, err := MakeDir(-1, -1)
		return err
	})
	if e := (kernel.LockedError{}); errors.As(err, &e) {
		return nil, fmt.Errorf("this network namespace is in use by weft, process %s: stop that first", e.Process)
	}
	if err != nil {
		return nil, fmt.Errorf("lock the host's set-up: %w", err)
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
	kernel.RemoveRunDirs(l.dir)
	l.file.Close()
}
