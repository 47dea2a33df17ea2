package fabric

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"weft/internal/shortage"
)

// refused is a lack of privilege that has been explained.
type refused struct{ error }

func (r refused) Unwrap() error { return r.error }

// explain adds to a refusal what would permit it, and to a shortage what would end
// it.
func explain(err error) error {
	err = shortage.Explain(err)
	if errors.As(err, new(refused)) || !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES) {
		return err
	}
	return refused{fmt.Errorf("%w: run as root or with the capabilities CAP_NET_ADMIN and CAP_SYS_ADMIN", err)}
}

// notTheKernels reports whether an error would be the same with any kernel: a lack
// of privilege or of a resource.
func notTheKernels(err error) bool {
	return errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || shortage.Is(err)
}

// CanBuildLab says why this process may not build a lab, nil if it may.
func CanBuildLab() error {
	if err := requireCapability(unix.CAP_NET_ADMIN, "CAP_NET_ADMIN"); err != nil {
		return err
	}
	return requireCapability(unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN")
}

// requireCapability fails unless the calling thread has a capability in effect.
func requireCapability(number int, name string) error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return fmt.Errorf("read the capabilities: %w", err)
	}
	if data[number/32].Effective&(1<<(number%32)) == 0 {
		return fmt.Errorf("no %s: run as root or with that capability", name)
	}
	return nil
}
