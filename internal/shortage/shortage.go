// Package shortage says of an error that something has run out, what that is and
// how to get more: descriptors, memory, room. A caller that would take an error
// for a kernel that is too old asks it first.
package shortage

import (
	"errors"
	"fmt"
	"syscall"
)

// remedies are by error number. Errors of the kernel's about privileges depend on
// the privilege, and are not here.
var remedies = []struct {
	errno  syscall.Errno
	remedy func() string
}{
	{syscall.EMFILE, func() string {
		return "this process has no descriptors left" + limit() + ": raise its limit (LimitNOFILE= of its systemd unit, or ulimit -n)"
	}},
	{syscall.ENFILE, func() string {
		return "the whole system has no descriptors left: raise its limit (sysctl fs.file-max), or end what holds them"
	}},
	{syscall.ENOMEM, func() string {
		return "the kernel has no memory for it: free some, or raise the limit of the control group (MemoryMax= of the systemd unit) or of locked memory (LimitMEMLOCK=, ulimit -l)"
	}},
	{syscall.ENOBUFS, func() string {
		return "the kernel has no buffers for it: free memory, or raise the limit of the control group (MemoryMax= of the systemd unit)"
	}},
	{syscall.ENOSPC, func() string {
		return "a disk or a table of the kernel's is full: make room, or raise its limit"
	}},
}

// explained is an error that says what to do.
type explained struct {
	err    error
	remedy string
}

func (e explained) Error() string { return e.err.Error() + ": " + e.remedy }
func (e explained) Unwrap() error { return e.err }

// Is reports whether err says that something has run out.
func Is(err error) bool { return of(err) != nil }

// Explain adds to an error of something that has run out, once, how to get more.
// Other errors, and nil, it returns as they are.
func Explain(err error) error {
	remedy := of(err)
	if remedy == nil || errors.As(err, new(explained)) {
		return err
	}
	return explained{err, remedy()}
}

func of(err error) func() string {
	for _, r := range remedies {
		if errors.Is(err, r.errno) {
			return r.remedy
		}
	}
	return nil
}

// limit says how many descriptors a process may have, where the system tells.
func limit() string {
	if n, ok := descriptors(); ok {
		return fmt.Sprintf(" of the %d that it may have", n)
	}
	return ""
}
