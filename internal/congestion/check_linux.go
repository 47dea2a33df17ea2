package congestion

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Check says why the kernel's TCP in the network namespace of the calling thread cannot use
// a congestion control, nil if it can. With CAP_NET_ADMIN the kernel loads its module if
// there is one.
func Check(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return fmt.Errorf("congestion control %q: %w", name, err)
	}
	defer unix.Close(fd)
	err = unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
	if errors.Is(err, unix.ENOENT) || name == "" || len(name) > MaxName {
		return fmt.Errorf("%q is unknown to this kernel; it has %s", name, available())
	}
	if err != nil {
		return fmt.Errorf("congestion control %q: %w", name, err)
	}
	return nil
}

// available lists what the kernel has by now.
func available() string {
	b, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	if err != nil {
		return "a list that cannot be read: " + err.Error()
	}
	return strings.Join(strings.Fields(string(b)), ", ")
}
