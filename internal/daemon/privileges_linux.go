package daemon

import (
	"runtime"

	"golang.org/x/sys/unix"

	"weft/internal/event"
	"weft/internal/eventlog"
	"weft/internal/hostprog"
	"weft/internal/hostsetup"
	"weft/internal/service"
)

// kept are the capabilities that the daemon needs from start to end: to change routes,
// rules and settings; to open the packet socket; to load a table of paths when the topology
// changes.
var kept = service.Capabilities{unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_BPF}

// dropPrivileges does what only root can do, and makes the process begin anew with fewer
// privileges. In the new process it does nothing but to take over what was kept for it.
func dropPrivileges(c *Config, l *eventlog.Log) error {
	hostprog.TakeNames()
	hostprog.TakePacer()
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
	// Likewise connections that a crash left limited, whether or not there will be limits again.
	switch n, err := hostsetup.FreeLeftPaced(); {
	case err != nil:
		l.Warnf(event.Limited, "warning: %v", err)
	case n > 0:
		l.Infof(event.Repaired, "connections that an earlier run has left limited, and that are not any more: %d", n)
	}
	if _, err := hostsetup.MakeDir(a.UID, a.GID); err != nil {
		return err
	}
	if err := c.leaveKeys(a.UID, a.GID); err != nil {
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
		pacer, err := hostprog.KeepPacer()
		if err == nil {
			env = append(env, pacer)
		} else { // what fails without privileges would hide it
			l.Warnf(event.Limited, "warning: no connection will be slowed for switches with meter.qcn: %v", err)
		}
	}
	return service.RunAs(a, kept, env...)
}
