package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// confine shows this thread, and the processes that it starts, all files but those in dir and
// /proc as files that nobody may write. tailscaled is a program for a whole machine: it would
// write to /etc and /var.
func confine(dir string) error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("--dir=%s: %w", dir, err)
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("make all files read-only (needs Linux 5.12): %w", err)
	}
	for _, writable := range []string{dir, "/proc"} {
		if err := unix.MountSetattr(unix.AT_FDCWD, writable, 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("make %s writable: %w", writable, err)
		}
	}
	return nil
}
