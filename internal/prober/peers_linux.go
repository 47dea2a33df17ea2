package prober

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// peers returns the addresses to which the kernel has TCP connections, each once.
func peers(h *netlink.Handle) (map[netip.Addr]bool, error) {
	sockets, err := h.SocketDiagTCP(unix.AF_INET)
	if err != nil {
		return nil, fmt.Errorf("list of TCP connections (kernel option INET_DIAG): %w", err)
	}
	all := make(map[netip.Addr]bool)
	for _, s := range sockets {
		if a, ok := netip.AddrFromSlice(s.ID.Destination.To4()); ok && s.State == netlink.TCP_ESTABLISHED {
			all[a] = true
		}
	}
	return all, nil
}
