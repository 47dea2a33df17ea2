package kernel

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Families are the sockets that a handle opens when it is made. So it stays in
// that network namespace, whichever thread uses it.
var Families = []int{unix.NETLINK_ROUTE}

// Links finds links by name with one request for all.
func Links(h *netlink.Handle, names []string) ([]netlink.Link, error) {
	all, err := Dumped(h.LinkList)
	if err != nil {
		return nil, Explain(fmt.Errorf("list the links: %w", err))
	}
	byName := make(map[string]netlink.Link, len(all))
	for _, link := range all {
		byName[link.Attrs().Name] = link
	}
	links := make([]netlink.Link, len(names))
	for i, name := range names {
		if links[i] = byName[name]; links[i] == nil {
			return nil, fmt.Errorf("port %s: no such device in this network namespace; rename the device or choose another port format", name)
		}
	}
	return links, nil
}

// Dumped repeats a listing that was interrupted by changes of others.
func Dumped[T any](list func() ([]T, error)) ([]T, error) {
	for range 10 {
		all, err := list()
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			return all, err
		}
	}
	return list()
}

// IPNet is a prefix as the netlink library has it.
func IPNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// PrefixKey tells the destinations of IPv4 routes apart.
func PrefixKey(r netlink.Route) string {
	if r.Dst == nil {
		return "0.0.0.0/0"
	}
	return r.Dst.String()
}
