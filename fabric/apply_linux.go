package fabric

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
)

// Apply configures the network namespace of the calling thread as planned. The
// ports must exist. Applying a plan again changes nothing; routes of an earlier
// plan that are not in this one are removed, routes of others stay. It needs
// CAP_NET_ADMIN, a writable /proc/sys and, to attach eBPF, CAP_BPF.
func Apply(p NodePlan) (Report, error) {
	r, err := apply(p, nil, nil)
	if err != nil {
		return r, fmt.Errorf("configure %s: %w", p.Node, err)
	}
	return r, nil
}

// Mend is Apply for a node that has been configured before. It leaves ports down that
// should be down, and leaves the routes alone where an agent keeps them.
func Mend(p NodePlan, down map[string]bool, agent bool) (Report, error) {
	return apply(p, down, func(h *netlink.Handle) (int, error) {
		if agent {
			return 0, nil
		}
		routes := Routes{h: h, wanted: p.Routes}
		for _, port := range p.Ports {
			routes.ports = append(routes.ports, port.Name)
		}
		return routes.Resync()
	})
}

// apply leaves ports down that are to be. The routes are made by a step of its own
// unless that is given.
func apply(p NodePlan, down map[string]bool, routes func(*netlink.Handle) (int, error)) (r Report, err error) {
	if err := kernel.RequireCapability(unix.CAP_NET_ADMIN, "CAP_NET_ADMIN"); err != nil {
		return r, err
	}
	h, err := netlink.NewHandle(kernel.Families...)
	if err != nil {
		return r, kernel.Explain(err)
	}
	defer h.Close()
	ports, err := p.links(h)
	if err != nil {
		return r, err
	}
	lo, err := kernel.Links(h, []string{"lo"})
	if err != nil {
		return r, err
	}
	if routes == nil {
		routes = func(h *netlink.Handle) (int, error) { return syncRoutes(h, p.Routes, ports) }
	}
	for _, link := range append(lo, ports...) {
		if down[link.Attrs().Name] {
			continue
		}
		n, err := setUp(h, link)
		if err != nil {
			return r, err
		}
		r.Add(n, "set "+link.Attrs().Name+" up")
	}
	for _, step := range []struct {
		what string // done, with the number of things; "": the step tells it by itself
		do   func() (int, error)
	}{
		{"put back addresses of " + p.Device, func() (int, error) { return setAddress(h, p) }},
		{"", func() (int, error) { return 0, r.applySysctls(p.Sysctls) }},
		{"put back routes", func() (int, error) { return routes(h) }},
		{"", func() (int, error) { return 0, r.forwardLabels(h, p) }},
		{"put back the decapsulation of IP-in-IP", func() (int, error) { return r.decapsulate(h, ports, p) }},
		{"put back rules", func() (int, error) { return syncRules(h, p.rules(r.Decap == DecapIPIP)) }},
		// Last: what has a mark finds its routes.
		{"put back the program of host IDs", func() (int, error) { return r.attachSuffixes(h, ports, p) }},
	} {
		n, err := step.do()
		r.Add(n, step.what)
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

// Add records that n things were not as planned, and what was done about it.
func (r *Report) Add(n int, what string) {
	r.Changed += n
	switch {
	case n > 1:
		r.Did = append(r.Did, fmt.Sprintf("%s: %d", what, n))
	case n == 1:
		r.Did = append(r.Did, what)
	}
}

// setAddress gives the node its address and, where the kernel is to
// decapsulate, those at which it does.
func setAddress(h *netlink.Handle, p NodePlan) (changed int, err error) {
	links, err := kernel.Links(h, []string{p.Device})
	if err != nil {
		return 0, err
	}
	list, err := kernel.Dumped(func() ([]netlink.Addr, error) { return h.AddrList(links[0], netlink.FAMILY_V4) })
	if err != nil {
		return 0, kernel.Explain(fmt.Errorf("addresses of %s: %w", p.Device, err))
	}
	have := make(map[string]bool, len(list))
	for _, a := range list {
		have[a.IPNet.String()] = true
	}
	for _, addr := range p.addresses() {
		want := kernel.IPNet(netip.PrefixFrom(addr, 32))
		if have[want.String()] {
			continue
		}
		if err := h.AddrReplace(links[0], &netlink.Addr{IPNet: want}); err != nil {
			return changed, kernel.Explain(fmt.Errorf("address %s on %s: %w", addr, p.Device, err))
		}
		changed++
	}
	return changed, nil
}

func (r *Report) decapsulate(h *netlink.Handle, ports []netlink.Link, p NodePlan) (changed int, err error) {
	if len(p.Bouncing) == 0 {
		return 0, nil
	}
	r.Decap = DecapIPIP
	changed, err = addIPIP(h, p.Bouncing)
	if !errors.Is(err, errNoIPIP) {
		return changed, err
	}
	r.Decap = DecapEBPF
	return attachDecap(h, ports, p.marks())
}
