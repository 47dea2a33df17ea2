package service

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// ShowName has ps and pgrep show the program by its name, which is exe after RunAs. Where /proc
// cannot be written they show that.
func ShowName() {
	_ = os.WriteFile("/proc/self/comm", []byte(filepath.Base(os.Args[0])), 0)
}

// RunAs makes the process begin anew as a user with no capabilities (capabilities(7)) but
// those kept, and without a way to get any back. The new program has the arguments and the
// environment of this one, and env, further variables as "NAME=value". RunAs returns only
// on failure. The thread is of no more use then.
//
// Privileges belong to threads, and a Go program has several from the start. No call of
// Go's library reaches threads that cgo has made. But executing a program ends all threads
// except the one that does so, and the program gets the privileges of that thread. So RunAs
// is right for binaries of every kind, and the set-up that follows runs without root's
// privileges, too. To give the new program something else of a thread's, such as a mount
// namespace, lock the calling goroutine to its thread first.
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
	// By this name, for the user may be unable to see where the program is. See ShowName.
	err := syscall.Exec("/proc/self/exe", os.Args, append(os.Environ(), env...))
	return fmt.Errorf("drop privileges: begin anew: %w", err)
}
