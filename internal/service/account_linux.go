package service

import (
	"errors"
	"fmt"
	"os/user"
	"strconv"

	"golang.org/x/sys/unix"
)

// Account is a user and its main group.
type Account struct {
	Name     string
	UID, GID int
}

// AutoUser is the name by which LookUp finds the user OwnUser, or where there is none
// nobody, whose other processes may send weft signals.
const (
	AutoUser = "auto"
	OwnUser  = "weft"
)

// LookUp finds a user by name or number.
func LookUp(name string) (Account, error) {
	if name == AutoUser {
		if a, err := LookUp(OwnUser); err == nil {
			return a, nil
		}
		name = "nobody"
	}
	u, err := user.Lookup(name)
	if err != nil {
		if _, wrong := strconv.Atoi(name); wrong == nil {
			u, err = user.LookupId(name)
		}
		if errors.As(err, new(user.UnknownUserError)) || errors.As(err, new(user.UnknownUserIdError)) {
			return Account{}, fmt.Errorf("there is no user %q on this machine; create it, or name another", name)
		}
		if err != nil {
			return Account{}, fmt.Errorf("user %q: %w; name another", name, err)
		}
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	return Account{name, uid, gid}, errors.Join(err1, err2)
}

// SharedUser returns a warning if the process runs as a user that other services may run
// as, too; otherwise "".
func SharedUser() string {
	u, err := user.Current()
	if err != nil || u.Username != "nobody" {
		return ""
	}
	return "runs as nobody, of which any other process can stop it: useradd --system " + OwnUser + " makes a user of its own, which is taken from the next start on"
}

// become makes the calling thread the user's; package syscall would change all.
// The capabilities stay permitted.
func (a Account) become() error {
	if a.UID == 0 {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0); err != nil {
		return err
	}
	for _, call := range [][4]uintptr{
		{unix.SYS_SETGROUPS, 0, 0, 0},
		{unix.SYS_SETRESGID, uintptr(a.GID), uintptr(a.GID), uintptr(a.GID)},
		{unix.SYS_SETRESUID, uintptr(a.UID), uintptr(a.UID), uintptr(a.UID)},
	} {
		if _, _, errno := unix.RawSyscall(call[0], call[1], call[2], call[3]); errno != 0 {
			return errno
		}
	}
	return nil
}
