package daemon

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// kept are the capabilities that the daemon needs all along: to change routes,
// rules and settings, now and at the end; to open the packet socket; to load a
// table of paths when the topology changes.
var kept = []uintptr{unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_BPF}

// account is a user and its main group.
type account struct {
	name     string
	uid, gid int
}

func lookUp(name string) (account, error) {
	u, err := user.Lookup(name)
	if err != nil {
		if u, err = user.LookupId(name); err != nil {
			return account{}, fmt.Errorf("user %q: %w; create it, or name another (key user)", name, err)
		}
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	return account{name, uid, gid}, errors.Join(err1, err2)
}

// mustDrop reports whether the process has more privileges than it needs, and
// is able to give them up.
func mustDrop() (bool, error) {
	if os.Geteuid() != 0 {
		return false, nil
	}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if err := unix.Capget(&hdr, &have[0]); err != nil {
		return false, fmt.Errorf("read the capabilities: %w", err)
	}
	want := capabilities()
	return have[0].Permitted&^want[0].Permitted != 0 || have[1].Permitted&^want[1].Permitted != 0, nil
}

func capabilities() (data [2]unix.CapUserData) {
	for _, c := range kept {
		data[c/32].Permitted |= 1 << (c % 32)
	}
	for i := range data {
		data[i].Effective, data[i].Inheritable = data[i].Permitted, data[i].Permitted
	}
	return data
}

// runAs makes the process begin anew as a user with no more than the kept
// capabilities, and without a way to get any back. It returns only on failure.
//
// Privileges are a thread's, and a Go program has threads from the start; those
// that cgo has made no library call of Go's reaches. Executing a program ends all
// threads but the one that does so, and what that one has is what the program
// gets. So this is right for binaries of any kind, and the set-up that follows
// runs without root's privileges, too.
func runAs(a account) error {
	runtime.LockOSThread() // for good: this thread is not to be used again
	if err := shareTUN(a); err != nil {
		return err
	}
	steps := []struct {
		what string
		do   func() error
	}{
		{"capability bounding set", dropBounding},
		{"user " + a.name, a.become},
		{"capabilities", keepCapabilities},
		{"no new privileges", func() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			return fmt.Errorf("drop privileges: %s: %w", s.what, err)
		}
	}
	// By this name, for the user may be unable to see where the program is.
	err := syscall.Exec("/proc/self/exe", os.Args, os.Environ())
	return fmt.Errorf("drop privileges: begin anew: %w", err)
}

// dropBounding bounds what a later program could get to the kept capabilities.
func dropBounding() error {
	want := capabilities()
	for c := uintptr(0); ; c++ {
		if c < 64 && want[c/32].Permitted&(1<<(c%32)) != 0 {
			continue
		}
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) { // the kernel's last one was before
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// become changes the calling thread alone; package syscall would change all.
func (a account) become() error {
	if a.uid == 0 {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0); err != nil {
		return err
	}
	for _, call := range [][4]uintptr{
		{unix.SYS_SETGROUPS, 0, 0, 0},
		{unix.SYS_SETRESGID, uintptr(a.gid), uintptr(a.gid), uintptr(a.gid)},
		{unix.SYS_SETRESUID, uintptr(a.uid), uintptr(a.uid), uintptr(a.uid)},
	} {
		if _, _, errno := unix.RawSyscall(call[0], call[1], call[2], call[3]); errno != 0 {
			return errno
		}
	}
	return nil
}

// keepCapabilities makes them ambient: they outlive the beginning anew.
func keepCapabilities() error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := capabilities()
	if err := unix.Capset(&hdr, &data[0]); err != nil {
		return err
	}
	for _, c := range kept {
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, c, 0, 0); err != nil {
			return err
		}
	}
	return nil
}

const tunDevice = "/dev/net/tun"

// shareTUN makes the TUN driver's device accessible to a user if it is not, as in
// containers, where no udev sets its mode to 0666: by a node of the process's own
// in a mount namespace of its own. The device asks for CAP_NET_ADMIN anyway.
func shareTUN(a account) error {
	var st unix.Stat_t
	if a.uid == 0 || unix.Stat(tunDevice, &st) != nil || accessible(st, a) {
		return nil // where it is missing, opening it says so
	}
	err := unix.Unshare(unix.CLONE_NEWNS)
	if err == nil {
		err = unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, "")
	}
	if err == nil {
		err = unix.Mount("weft", "/dev/net", "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "size=4k,mode=755")
	}
	if err == nil {
		err = unix.Mknod(tunDevice, unix.S_IFCHR|0o600, int(st.Rdev))
	}
	if err == nil {
		err = unix.Chmod(tunDevice, 0o666)
	}
	if err != nil {
		return fmt.Errorf("%s is not for user %s, and cannot be made so: %w; chmod 0666 %s, as udev does, or choose user: root", tunDevice, a.name, err, tunDevice)
	}
	return nil
}

func accessible(st unix.Stat_t, a account) bool {
	const readWrite = 6
	switch {
	case int(st.Uid) == a.uid:
		return st.Mode>>6&readWrite == readWrite
	case int(st.Gid) == a.gid:
		return st.Mode>>3&readWrite == readWrite
	}
	return st.Mode&readWrite == readWrite
}

// monotonicMicroseconds reads CLOCK_MONOTONIC.
func monotonicMicroseconds() (int64, error) {
	var t unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return t.Nano() / 1000, err
}
