//go:build unix

package main

import "golang.org/x/sys/unix"

// kernelRelease names the kernel that runs here, such as Linux 6.12.48; "" if it does not say.
func kernelRelease() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
}
