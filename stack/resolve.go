package stack

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"time"
)

// resolve reads a network and an address; proto is tcp or udp. A name has one
// address or more. An empty or unspecified host is the stack itself: to listen, the
// unspecified address of IPv6 means both families, if it has both.
func (h *Host) resolve(ctx context.Context, network, address string, listen bool) (proto string, all []netip.AddrPort, err error) {
	six := h.address6.IsValid()
	family := ""
	switch network {
	case "tcp", "udp":
		if !six {
			family = "4"
		}
	case "tcp4", "udp4", "tcp6", "udp6":
		if family = network[3:]; family == "4" || six {
			break
		}
		fallthrough
	default:
		return "", nil, net.UnknownNetworkError(network)
	}
	proto = network[:3]
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return "", nil, err
	}
	port, err := net.DefaultResolver.LookupPort(ctx, network, service)
	if err != nil {
		return "", nil, err
	}
	ips := []netip.Addr{netip.IPv6Unspecified()}
	if host != "" {
		if ips, err = lookup(ctx, family, host); err != nil {
			return "", nil, err
		}
	}
	for _, ip := range ips {
		if ip = ip.Unmap(); ip.IsUnspecified() {
			ip = h.itself(ip, family, listen)
		}
		all = append(all, netip.AddrPortFrom(ip, uint16(port)))
	}
	return proto, all, nil
}

// itself is the address that an unspecified one stands for: one of the Host's, or, to
// listen by both families, IPv6's unspecified one.
func (h *Host) itself(unspecified netip.Addr, family string, listen bool) netip.Addr {
	switch {
	case family == "6":
		return h.address6
	case family == "4" || unspecified.Is4() || !listen:
		return h.address
	}
	return unspecified
}

// lookup returns the addresses of a host, at least one. family is "4", "6", or "" for both.
func lookup(ctx context.Context, family, host string) ([]netip.Addr, error) {
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return net.DefaultResolver.LookupNetIP(ctx, "ip"+family, host)
	}
	switch {
	case ip.Zone() != "":
		return nil, &net.AddrError{Err: "an address with a zone", Addr: host}
	case family == "4" && !ip.Unmap().Is4():
		return nil, &net.AddrError{Err: "not an IPv4 address", Addr: host}
	case family == "6" && ip.Unmap().Is4():
		return nil, &net.AddrError{Err: "not an IPv6 address", Addr: host}
	}
	return []netip.Addr{ip}, nil
}

// minShare is what an address is given of the time before others are, as in
// package net.
const minShare = 2 * time.Second

// shareOf gives the first of the addresses that are left its part of the time
// that ctx leaves.
func shareOf(ctx context.Context, left int) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok || left == 1 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, max(time.Until(deadline)/time.Duration(left), minShare))
}

// dialErrors are why each address of a name failed, in turn.
type dialErrors []*net.OpError

// reduce makes one error of those of one address or more.
func (d dialErrors) reduce(network string) error {
	if len(d) == 1 {
		return d[0]
	}
	return &net.OpError{Op: "dial", Net: network, Err: d}
}

func (d dialErrors) Error() string {
	all := make([]string, len(d))
	for i, e := range d {
		all[i] = e.Addr.String() + ": " + e.Err.Error()
	}
	return strings.Join(all, "; ")
}

// Timeout is the first address's, as it is in package net.
func (d dialErrors) Timeout() bool { return d[0].Timeout() }

func (d dialErrors) Unwrap() []error {
	all := make([]error, len(d))
	for i, e := range d {
		all[i] = e
	}
	return all
}
