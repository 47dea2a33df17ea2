package kernel

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
)

// SetSupers sets how long super-segments over IPv4 may be that a device of the calling thread's
// network namespace sends and merges, in bytes, and returns how long those could be that it
// sends. A switch's port cuts longer ones.
func SetSupers(device string, bytes int) (was int, err error) {
	l, err := netlink.LinkByName(device)
	if err != nil {
		return 0, Explain(fmt.Errorf("device %s: %w", device, err))
	}
	if was = int(l.Attrs().GSOIPv4MaxSize); was == 0 {
		return 0, errors.New("this kernel has no gso_ipv4_max_size (Linux 6.3)")
	}
	if err := errors.Join(netlink.LinkSetGSOIPv4MaxSize(l, bytes), netlink.LinkSetGROIPv4MaxSize(l, bytes)); err != nil {
		return 0, Explain(fmt.Errorf("super-segments of %d bytes at %s: %w", bytes, device, err))
	}
	return was, nil
}
