package daemon

import (
	"runtime"

	"golang.org/x/sys/unix"

	"weft/internal/hostprog"
	"weft/internal/hostsetup"
	"weft/internal/service"
)

// kept are the capabilities that the daemon needs from start to end: to change routes,
// rules and settings; to open the packet socket; to load a table of paths when the topology
// changes.
var kept = service.Capabilities{unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_BPF}

// dropPrivileges does what only root can do, and makes the process begin anew with fewer
// privileges. In the new process it does nothing.
func dropPrivileges(c *Config) error {
	hostprog.TakeNames()
	must, err := kept.Exceeded()
	if !must || err != nil {
		return err
	}
	a, err := service.LookUp(c.User)
	if err != nil {
		return c.lines.Errorf("user", "%w", err)
	}
	// A program that a crash left can be found by its number only with
	// CAP_SYS_ADMIN. Its packets go by plain ECMP for the moment.
	if err := hostsetup.DetachLeftovers(); err != nil {
		return err
	}
	if _, err := hostsetup.MakeDir(a.UID, a.GID); err != nil {
		return err
	}
	runtime.LockOSThread() // whose mount namespace may become another one
	if err := shareTUN(a); err != nil {
		return err
	}
	var env []string
	if names, err := hostprog.KeepNames(); err == nil { // or others' programs are known by number
		env = append(env, names)
	}
	switch control, err := c.leaveControl(); {
	case err != nil:
		return err
	case control != "":
		env = append(env, control)
	}
	if c.QCN.Enabled {
		if pacer, err := hostprog.KeepPacer(); err == nil { // or OpenPacer says why
			env = append(env, pacer)
		}
	}
	return service.RunAs(a, kept, env...)
}
