package service

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// As calls do on a thread that may open what the account may: by its user and group, without
// other groups, and without root's privileges over files. It returns what do returns. Where the
// process may not become others, as where it is not root, it returns nil and does not call do.
// do must open files on the calling goroutine.
func (a Account) As(do func() error) error {
	if os.Geteuid() != 0 || a.UID == 0 {
		return nil
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		if !a.opensFiles() {
			done <- nil
			return
		}
		done <- do()
	}()
	return <-done
}

// Reads says what keeps a daemon that becomes the account from reading its configuration again,
// which it does as soon as it has become it, and at each reload. load reads all of it, as in As.
func (a Account) Reads(load func() error) error {
	err := a.As(load)
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s, whom the daemon becomes, cannot read it: %w", a.Name, err)
}

// opensFiles has the calling thread open files as the account, and reports whether it does.
func (a Account) opensFiles() bool {
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
		return false
	}
	ask := ^uintptr(0) // changes nothing, as no user and no group has that number
	for call, id := range map[uintptr]int{unix.SYS_SETFSGID: a.GID, unix.SYS_SETFSUID: a.UID} {
		unix.RawSyscall(call, uintptr(id), 0, 0)
		if is, _, _ := unix.RawSyscall(call, ask, 0, 0); int(is) != id {
			return false
		}
	}
	return true
}
