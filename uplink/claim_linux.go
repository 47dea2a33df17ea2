package uplink

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"weft/internal/hostsetup"
)

// claim is the right to attach programs in a network namespace. It is the lock that weft
// host also holds. Without it both would replace each other's programs, and a clean-up
// would take them for leftovers. The kernel releases it when the process ends.
type claim struct{ file *os.File }

// claimFile is hostsetup's name of the lock in its directory.
const claimFile = "lock"

// takeClaim takes the claim on the calling thread's network namespace.
func takeClaim() (*claim, error) {
	for {
		dir, err := hostsetup.MakeDir(-1, -1)
		if err != nil {
			return nil, err
		}
		name := filepath.Join(dir, claimFile)
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
		if errors.Is(err, fs.ErrNotExist) { // its former owner has removed the directory just now
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("the lock of weft's programs here: %w", err)
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			owner, _ := os.ReadFile(name)
			f.Close()
			if errors.Is(err, unix.EWOULDBLOCK) {
				return nil, fmt.Errorf("process %s has some here already, and they are one of a kind in a network namespace", strings.TrimSpace(string(owner)))
			}
			return nil, fmt.Errorf("the lock of weft's programs here: %w", err)
		}
		if !isAt(f, name) { // its former owner removed it before letting go
			f.Close()
			continue
		}
		if err := f.Truncate(0); err == nil {
			f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0) // for others' messages only
		}
		return &claim{f}, nil
	}
}

// isAt reports whether a name still is that of an open file.
func isAt(f *os.File, name string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(name)
	return err == nil && os.SameFile(a, b)
}

// release removes the file and the directories that are empty then.
func (c *claim) release() {
	dir := filepath.Dir(c.file.Name())
	os.Remove(c.file.Name())
	// A directory that holds anything else stays.
	if unix.Rmdir(dir) == nil {
		unix.Rmdir(filepath.Dir(dir))
	}
	c.file.Close()
}
