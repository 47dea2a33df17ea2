package stack

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"time"
)

// resolve reads a network and an address; proto is tcp or udp. A name has one
// address or more. An empty or unspecified host is the stack itself.
func (h *Host) resolve(ctx context.Context, network, address string) (proto string, all []netip.AddrPort, err error) {
	switch network {
	case "tcp", "tcp4", "udp", "udp4":
		proto = strings.TrimSuffix(network, "4")
	default:
		return "", nil, net.UnknownNetworkError(network)
	}
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return "", nil, err
	}
	port, err := net.DefaultResolver.LookupPort(ctx, network, service)
	if err != nil {
		return "", nil, err
	}
	ips := []netip.Addr{h.address}
	if host != "" {
		if ips, err = lookup(ctx, host); err != nil {
			return "", nil, err
		}
	}
	for _, ip := range ips {
		if ip = ip.Unmap(); ip.IsUnspecified() {
			ip = h.address
		}
		all = append(all, netip.AddrPortFrom(ip, uint16(port)))
	}
	return proto, all, nil
}

// lookup returns the IPv4 addresses of a host, at least one.
func lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		if !ip.Unmap().Is4() {
			return nil, &net.AddrError{Err: "not an IPv4 address", Addr: host}
		}
		return []netip.Addr{ip}, nil
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip4", host)
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
