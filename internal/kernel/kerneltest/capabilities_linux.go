package kerneltest

import (
	"errors"

	"golang.org/x/sys/unix"
)

// WithCapabilities runs f on the calling thread, which must be locked, with no
// other capabilities in effect.
func WithCapabilities(f func() error, caps ...int) error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if err := unix.Capget(&hdr, &have[0]); err != nil {
		return err
	}
	few := have
	few[0].Effective, few[1].Effective = 0, 0
	for _, c := range caps {
		few[c/32].Effective |= 1 << (c % 32)
	}
	if err := unix.Capset(&hdr, &few[0]); err != nil {
		return err
	}
	return errors.Join(f(), unix.Capset(&hdr, &have[0]))
}
