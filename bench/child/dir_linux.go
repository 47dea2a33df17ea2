package child

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"weft/internal/kernel"
)

// ownerFile is the lock in a directory that its process holds.
const ownerFile = "owner"

// Dir is a temporary directory of this process.
type Dir struct {
	Path string
	lock *os.File
}

// TempDir makes a directory whose name begins with prefix. It removes those of that prefix
// that processes of this user have left behind.
func TempDir(prefix string) (*Dir, error) {
	if err := removeLeft(prefix); err != nil {
		return nil, err
	}
	for tries := 0; ; tries++ {
		path, err := os.MkdirTemp("", prefix)
		if err != nil {
			return nil, err
		}
		lock, err := kernel.LockFile(filepath.Join(path, ownerFile), func() error { return os.MkdirAll(path, 0o700) })
		if e := (kernel.LockedError{}); errors.As(err, &e) && tries < 100 {
			continue // another process takes it for left behind, and removes it
		}
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(path))
		}
		return &Dir{path, lock}, nil
	}
}

// Remove removes the directory and what is in it.
func (d *Dir) Remove() error {
	err := os.RemoveAll(d.Path)
	if d.lock != nil {
		d.lock.Close() // after that, so that nobody else removes it meanwhile
	}
	return err
}

// removeLeft removes the directories whose processes have died: nobody holds the lock.
func removeLeft(prefix string) error {
	list, err := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	if err != nil {
		return err
	}
	for _, path := range list {
		if !own(path) {
			continue
		}
		lock, err := os.OpenFile(filepath.Join(path, ownerFile), unix.O_NOFOLLOW, 0)
		if err != nil {
			continue // it is being made or removed
		}
		if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = os.RemoveAll(path) // a bench does not fail for what another has left
		}
		lock.Close()
	}
	return nil
}

// own reports whether a path is a directory of this user.
func own(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
