package prober

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// peers returns the addresses of a family to which the kernel has TCP connections, each
// once. Those that the fabric cannot have, such as loopback's and link-local ones, are left
// out.
func peers(h *netlink.Handle, six bool) (map[netip.Addr]bool, error) {
	families := []uint8{unix.AF_INET6}
	if !six {
		families = append(families, unix.AF_INET) // a socket of IPv6 may have a peer of IPv4, too
	}
	all := make(map[netip.Addr]bool)
	for _, family := range families {
		sockets, err := h.SocketDiagTCP(family)
		if err != nil {
			return nil, fmt.Errorf("list of TCP connections (kernel option INET_DIAG): %w", err)
		}
		for _, s := range sockets {
			a, ok := netip.AddrFromSlice(s.ID.Destination)
			if a = a.Unmap(); ok && s.State == netlink.TCP_ESTABLISHED && a.Is6() == six && a.IsGlobalUnicast() {
				all[a] = true
			}
		}
	}
	return all, nil
}

// lookEvery is how often the kernel is asked with whom it has connections.
const lookEvery = 500 * time.Millisecond

// lookAround tells the watcher to whom there is traffic.
func (p *Prober) lookAround() {
	for {
		began := time.Now()
		all, err := peers(p.kernel, p.self.Is6())
		took := time.Since(began)
		if err == nil {
			p.lookout.Active(slices.Collect(maps.Keys(all))...)
		}
		select {
		case <-p.stop:
			return
		case <-time.After(max(lookEvery, 20*took)): // a hundred thousand connections take a while
		}
	}
}
