package kernel

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"weft/internal/exitcode"
	"weft/internal/shortage"
)

// Refused is a lack of privilege that has been explained.
type Refused struct{ error }

func (r Refused) Unwrap() error { return r.error }

// Explain adds to a refusal what would permit the call, and to a shortage what would end
// it.
func Explain(err error) error {
	err = shortage.Explain(err)
	if errors.As(err, new(Refused)) || !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES) {
		return err
	}
	return Refused{exitcode.AsAbsent(fmt.Errorf("%w: run as root or with the capabilities CAP_NET_ADMIN and CAP_SYS_ADMIN", err))}
}

// NotTheKernels reports whether an error would be the same with any kernel: a lack
// of privilege or of a resource.
func NotTheKernels(err error) bool {
	return errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || shortage.Is(err)
}

// RequireCapability fails unless the calling thread has a capability in effect.
func RequireCapability(number int, name string) error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return fmt.Errorf("read the capabilities: %w", err)
	}
	if data[number/32].Effective&(1<<(number%32)) == 0 {
		return exitcode.AsAbsent(fmt.Errorf("no %s: run as root or with that capability", name))
	}
	return nil
}
