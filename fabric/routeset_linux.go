package fabric

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
)

// Routes keeps the routes of one node as planned, for agents that plan anew after
// every change. It remembers what it has installed and tells the kernel only the
// difference. Methods are safe for concurrent use.
//
// The kernel deletes routes by itself: those all of whose ports are set down (not
// those that merely lose their carrier). It does not restore them. The caller
// that learns that a port was set down and up again calls Resync.
type Routes struct {
	mu     sync.Mutex
	h      *netlink.Handle
	index  map[string]int // interface indexes of the ports that have a device
	ports  []string
	labels NodePlan          // as first planned: there are no other ways for labels
	wanted []Route           // as last planned
	have   map[routeID]Route // as installed; fewer hops than planned where ports are down
	up     map[string]bool   // ports that are up
	looked bool              // for the ports, since install began
}

// OpenRoutes makes the routes of the calling thread's network namespace those
// of the plan, as Apply does, and stays bound to it. Routes over ports without a
// device are left for Resync. It needs CAP_NET_ADMIN.
func OpenRoutes(p NodePlan) (*Routes, error) {
	if err := kernel.RequireCapability(unix.CAP_NET_ADMIN, "CAP_NET_ADMIN"); err != nil {
		return nil, fmt.Errorf("routes of %s: %w", p.Node, err)
	}
	h, err := netlink.NewHandle(kernel.Families...)
	if err != nil {
		return nil, kernel.Explain(fmt.Errorf("routes of %s: %w", p.Node, err))
	}
	r := &Routes{h: h, labels: p, wanted: slices.Clone(p.Routes)}
	for _, port := range p.Ports {
		r.ports = append(r.ports, port.Name)
	}
	if _, err := r.Resync(); err != nil {
		h.Close()
		return nil, fmt.Errorf("routes of %s: %w", p.Node, err)
	}
	return r, nil
}

// Close closes the handle. The routes stay.
func (r *Routes) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Close()
}

// Set changes the routes that differ from those set last. It adds routes first,
// so that no destination is without a route in between. A route over ports that
// are down is installed over the others, or left out, and tried again by the next
// Set. After an error some of the changes may have been made; the next Set makes
// the rest.
func (r *Routes) Set(p NodePlan) (changed int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanted = append(r.wanted[:0], p.Routes...)
	changed, err = r.install()
	if err == nil && changed > 0 {
		err = r.refreshBalance()
	}
	if err != nil {
		return changed, fmt.Errorf("routes of %s: %w", p.Node, err)
	}
	return changed, nil
}

// refreshBalance has programs that balance at the ports know of the routes.
func (r *Routes) refreshBalance() error {
	links := make([]netlink.Link, 0, len(r.index))
	for name, index := range r.index {
		links = append(links, &netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Name: name, Index: index}})
	}
	err := refreshBalance(r.h, links, r.wanted)
	if errors.As(err, new(kernel.Refused)) {
		return nil // only this process's own Balance may, which does it by itself
	}
	return err
}

// Resync reads back what the kernel has. It restores routes to those set last, and routes
// of labels to those planned when the Routes were opened. Routes over ports that are down,
// or have no device, are restored when the port is back.
func (r *Routes) Resync() (changed int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.findPorts(); err != nil {
		return 0, err
	}
	kernel, err := plannedRoutes(r.h)
	if err != nil {
		return 0, err
	}
	r.have = make(map[routeID]Route, len(kernel))
	for id, have := range kernel {
		r.have[id] = unplanned(have)
	}
	for _, want := range r.wanted {
		have, ok := kernel[want.id()]
		if !ok {
			continue
		}
		for _, planned := range []Route{want, r.overLive(want)} {
			if n, err := netlinkRoute(planned, r.index); err == nil && routeKey(have) == routeKey(n) {
				r.have[want.id()] = planned
				break
			}
		}
	}
	changed, err = r.install()
	if err == nil {
		err = r.refreshBalance()
	}
	if err != nil || !r.labels.has6() {
		return changed, err
	}
	n, err := restoreLabels(r.h, r.labels.Without(r.missing()...))
	return changed + n, err
}

// unplanned is a route of the kernel's as one that equals none that is wanted, but
// is of the same kind.
func unplanned(n netlink.Route) (r Route) {
	switch n.Type {
	case unix.RTN_UNICAST:
		r.Via = []Hop{{}}
	case unix.RTN_BLACKHOLE:
		r.Drop = true
	}
	return r
}

// missing are the ports that had no device when findPorts looked.
func (r *Routes) missing() (names []string) {
	for _, name := range r.ports {
		if _, ok := r.index[name]; !ok {
			names = append(names, name)
		}
	}
	return names
}

// install makes r.have what is wanted, with r.mu held.
func (r *Routes) install() (changed int, err error) {
	r.looked = false
	keep := make(map[routeID]bool, len(r.wanted))
	for _, want := range r.wanted {
		id := want.id()
		keep[id] = true
		if have, ok := r.have[id]; ok && sameRoute(have, want) {
			continue
		}
		n, err := r.replace(want)
		changed += n
		if err != nil {
			return changed, err
		}
	}
	for id, have := range r.have {
		if keep[id] {
			continue
		}
		if err := deleteRoute(r.h, id, have.kind()); err != nil {
			return changed, err
		}
		delete(r.have, id)
		changed++
	}
	return changed, nil
}

func sameRoute(a, b Route) bool {
	return a.Prefix == b.Prefix && a.Table == b.Table && a.Src == b.Src && a.Drop == b.Drop && slices.Equal(a.Via, b.Via)
}

func (r *Routes) replace(want Route) (changed int, err error) {
	err = r.put(want)
	if isDown(err) {
		return r.replaceOverLive(want)
	}
	if err != nil {
		return 0, err
	}
	r.have[want.id()] = want
	return 1, nil
}

// errNoDevice is of a route over a port without a device.
var errNoDevice = errors.New("the port has no device")

// isDown reports whether the kernel refused a route because a port of it is
// down, or gone.
func isDown(err error) bool {
	return errors.Is(err, unix.ENETDOWN) || errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.ENODEV) || errors.Is(err, errNoDevice)
}

func (r *Routes) put(want Route) error {
	for _, hop := range want.Via {
		if _, ok := r.index[hop.Port]; !ok {
			return errNoDevice
		}
	}
	n, err := netlinkRoute(want, r.index)
	if err != nil {
		return err
	}
	if err := r.h.RouteReplace(&n); err != nil {
		return kernel.Explain(fmt.Errorf("%s: %w", want.command(), err))
	}
	return nil
}

// replaceOverLive installs a route over those of its ports that are up; what
// it had over others is removed.
func (r *Routes) replaceOverLive(want Route) (changed int, err error) {
	id := want.id()
	if !r.looked {
		if err := r.findPorts(); err != nil {
			return 0, err
		}
		r.looked = true
	}
	less := r.overLive(want)
	have, ok := r.have[id]
	switch {
	case ok && sameRoute(have, less):
		return 0, nil
	case len(less.Via) > 0:
		if err = r.put(less); err == nil {
			r.have[id] = less
			return 1, nil
		}
		if !isDown(err) { // another port went down meanwhile: next time
			return 0, err
		}
	}
	if !ok {
		return 0, nil
	}
	delete(r.have, id)
	return 1, deleteRoute(r.h, id, have.kind())
}

// overLive is a route over those of its ports that are up.
func (r *Routes) overLive(want Route) Route {
	want.Via = deleted(want.Via, func(h Hop) bool { return !r.up[h.Port] })
	return want
}

// findPorts looks for the ports' devices: one that was made anew has another index.
func (r *Routes) findPorts() error {
	all, err := kernel.Dumped(r.h.LinkList)
	if err != nil {
		return kernel.Explain(fmt.Errorf("list the links: %w", err))
	}
	r.index, r.up = make(map[string]int, len(r.ports)), make(map[string]bool, len(r.ports))
	for _, link := range all {
		if a := link.Attrs(); slices.Contains(r.ports, a.Name) {
			r.index[a.Name], r.up[a.Name] = a.Index, a.Flags&net.FlagUp != 0
		}
	}
	return nil
}
