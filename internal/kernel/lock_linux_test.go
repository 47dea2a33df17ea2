package kernel

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

func TestLockFile_namesItsOwner(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	nothing := func() error { return nil }
	f, err := LockFile(name, nothing)
	if err != nil {
		t.Fatal(err)
	}
	var locked LockedError
	if _, err := LockFile(name, nothing); !errors.As(err, &locked) || locked.Process != strconv.Itoa(os.Getpid()) {
		t.Errorf("a second time: %v", err)
	}
	f.Close()
	f, err = LockFile(name, nothing)
	if err != nil {
		t.Fatalf("after it was let go: %v", err)
	}
	f.Close()
}

// An owner removes the file and its directory. Two never have the lock, although others
// have opened the file that is removed.
func TestLockFile_hasOneOwner(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	name := filepath.Join(dir, "lock")
	var owners, taken atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for taken.Load() < 600 {
				f, err := LockFile(name, func() error { return os.MkdirAll(dir, 0o700) })
				if errors.As(err, &LockedError{}) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if owners.Add(1) != 1 {
					t.Error("two owners")
				}
				taken.Add(1)
				runtime.Gosched() // time for a second owner
				owners.Add(-1)
				os.Remove(name)
				os.Remove(dir)
				f.Close()
			}
		})
	}
	all.Wait()
}
