package kernel

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"weft/internal/exitcode"
)

// SysctlVariable names a directory that has the settings of /proc/sys. In a container
// /proc/sys is read-only, and no runtime lets a volume be mounted over it, so that the machine's
// is mounted elsewhere. It needs net alone.
const SysctlVariable = "WEFT_SYSCTL_DIR"

// SysctlDir returns where settings are read and written: /proc/sys, or what SysctlVariable
// names.
func SysctlDir() string {
	if dir := os.Getenv(SysctlVariable); dir != "" {
		return dir
	}
	return "/proc/sys"
}

// CheckSysctlDir fails if SysctlVariable names a directory that has no settings of the network.
// A missing setting is otherwise taken for one that the kernel does not have.
func CheckSysctlDir() error {
	dir := os.Getenv(SysctlVariable)
	if dir == "" {
		return nil
	}
	var s unix.Statfs_t
	net := filepath.Join(dir, "net")
	switch err := unix.Statfs(net, &s); {
	case err != nil:
		return exitcode.AsUsage(fmt.Errorf("%s=%s: %s: %w; mount the machine's /proc/sys/net there", SysctlVariable, dir, net, err))
	case s.Type != unix.PROC_SUPER_MAGIC:
		return exitcode.AsUsage(fmt.Errorf("%s=%s: %s is not of the proc file system; mount the machine's /proc/sys/net there", SysctlVariable, dir, net))
	}
	return nil
}

// sysctlDir is SysctlDir, or the same in a process's own instance of proc. It is valid until
// done is called.
func sysctlDir() (dir string, done func()) {
	if os.Getenv(SysctlVariable) != "" {
		return SysctlDir(), func() {}
	}
	dir, done = settings.use()
	return dir + "/sys", done
}
