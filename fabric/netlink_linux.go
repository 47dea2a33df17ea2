package fabric

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// netlinkFamilies are the sockets that a handle opens when it is made, so that
// it stays in that network namespace whatever thread uses it.
var netlinkFamilies = []int{unix.NETLINK_ROUTE}

// portLinks finds links by name with one request for all.
func portLinks(h *netlink.Handle, names []string) ([]netlink.Link, error) {
	all, err := dumped(h.LinkList)
	if err != nil {
		return nil, explain(fmt.Errorf("list the links: %w", err))
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

// dumped repeats a listing that others' changes interrupted.
func dumped[T any](list func() ([]T, error)) ([]T, error) {
	for range 10 {
		all, err := list()
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			return all, err
		}
	}
	return list()
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func prefixKey(r netlink.Route) string {
	if r.Dst == nil {
		return "0.0.0.0/0"
	}
	return r.Dst.String()
}
