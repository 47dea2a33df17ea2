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

// lookEvery is how often the kernel is asked with whom it has connections.
const lookEvery = 500 * time.Millisecond

// lookAround tells the watcher to whom there is traffic.
func (p *Prober) lookAround() {
	for {
		began := time.Now()
		all, err := peers(p.kernel)
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
