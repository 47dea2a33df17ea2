package service

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// RunAs makes the process begin anew as a user with no more than the kept
// capabilities (capabilities(7)), and without a way to get any back. The new program has the
// arguments and the environment of this one, and env, further variables as
// "NAME=value". It returns only on failure; the thread is of no more use then.
//
// Privileges are a thread's, and a Go program has threads from the start; those
// that cgo has made no library call of Go's reaches. Executing a program ends all
// threads but the one that does so, and what that one has is what the program
// gets. So this is right for binaries of any kind, and the set-up that follows
// runs without root's privileges, too. Who wants the new program to have more of
// a thread's own, such as a mount namespace, locks the calling goroutine to its
// thread before.
func RunAs(a Account, keep Capabilities, env ...string) error {
	runtime.LockOSThread() // for good
	steps := []struct {
		what string
		do   func() error
	}{
		{"capability bounding set", keep.bound},
		{"user " + a.Name, a.become},
		{"capabilities", keep.keep},
		{"no new privileges", func() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			return fmt.Errorf("drop privileges: %s: %w", s.what, err)
		}
	}
	// By this name, for the user may be unable to see where the program is.
	err := syscall.Exec("/proc/self/exe", os.Args, append(os.Environ(), env...))
	return fmt.Errorf("drop privileges: begin anew: %w", err)
}
