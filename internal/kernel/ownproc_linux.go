package kernel

import (
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// ownProc is an instance of proc for this process alone, where the process may make one.
//
// The kernel caches what was looked up in an instance of proc, and finds
// sys/net/ipv4/ip_forward of all network namespaces in one chain. Namespaces that are gone
// stay in it until memory is short. After a day of labs a look-up in /proc took 5 ms, and
// building a lab 4.5 s of a processor instead of 0.2 s. This instance is replaced after
// renewAfter uses, and its cache goes with it.
type ownProc struct {
	uses atomic.Int64
	mu   sync.RWMutex
	fd   int // of the instance; 0: none yet, or none can be made
}

const renewAfter = 4096

var settings ownProc

// use returns a directory to look for sys in. It is valid until done is called.
func (p *ownProc) use() (dir string, done func()) {
	if p.uses.Add(1)%renewAfter == 1 {
		p.renew()
	}
	p.mu.RLock()
	if p.fd == 0 {
		return "/proc", p.mu.RUnlock
	}
	return fmt.Sprintf("/proc/self/fd/%d", p.fd), p.mu.RUnlock
}

func (p *ownProc) renew() {
	p.mu.Lock()
	defer p.mu.Unlock()
	had := p.fd
	p.fd = mountProc()
	if had != 0 {
		unix.Close(had)
	}
}

// mountProc returns a descriptor of a new instance of proc that is mounted nowhere; 0 if
// none can be made, or if /proc/sys is read-only here: somebody wants it so.
func mountProc() int {
	var s unix.Statfs_t
	if err := unix.Statfs("/proc/sys", &s); err != nil || s.Flags&unix.ST_RDONLY != 0 {
		return 0
	}
	fs, err := unix.Fsopen("proc", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return 0
	}
	defer unix.Close(fs)
	if unix.FsconfigCreate(fs) != nil {
		return 0
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return 0
	}
	return fd
}
