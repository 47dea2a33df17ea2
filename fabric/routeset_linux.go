package fabric

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Routes keeps the routes of one node as planned, for agents that plan anew
// after every change: it remembers what it has installed and tells the kernel
// only of the difference. Methods are safe for concurrent use.
//
// The kernel deletes routes by itself: those all of whose ports are set down
// (not those that merely lose their carrier). It does not restore them.
// Whoever learns that a port was set down and up again calls Resync.
type Routes struct {
	mu     sync.Mutex
	h      *netlink.Handle
	index  map[string]int // interface indexes of the ports
	ports  []string
	labels NodePlan          // as first planned: there are no other ways for labels
	wanted []Route           // as last planned
	have   map[routeID]Route // as installed; fewer hops than planned where ports are down
	up     map[string]bool   // ports that are up, once asked for; nil: not asked
}

// OpenRoutes makes the routes of the calling thread's network namespace those
// of the plan, as Apply does, and stays bound to it. The ports must exist. It
// needs CAP_NET_ADMIN.
func OpenRoutes(p NodePlan) (*Routes, error) {
	if err := requireCapability(unix.CAP_NET_ADMIN, "CAP_NET_ADMIN"); err != nil {
		return nil, fmt.Errorf("routes of %s: %w", p.Node, err)
	}
	h, err := netlink.NewHandle(netlinkFamilies...)
	if err != nil {
		return nil, explain(fmt.Errorf("routes of %s: %w", p.Node, err))
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

// Close lets go of the handle. The routes stay.
func (r *Routes) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Close()
}

// Set changes the routes that differ from those set last, those that appear
// first, so that no destination is without a route in between. A route over
// ports that are down is installed over the others, or left out, and tried
// again by the next Set. After an error some of the changes may have been
// made; the next Set makes the rest.
func (r *Routes) Set(p NodePlan) (changed int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanted = append(r.wanted[:0], p.Routes...)
	changed, err = r.install()
	if err != nil {
		return changed, fmt.Errorf("routes of %s: %w", p.Node, err)
	}
	return changed, nil
}

// Resync reads back what the kernel has and restores what is not as set last, and
// of labels what is not as planned when the Routes were opened.
func (r *Routes) Resync() (changed int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	links, err := portLinks(r.h, r.ports)
	if err != nil {
		return 0, err
	}
	r.index = portIndexes(links) // a port that was made anew has another
	kernel, err := plannedRoutes(r.h)
	if err != nil {
		return 0, err
	}
	r.have = make(map[routeID]Route, len(kernel))
	for id := range kernel {
		r.have[id] = Route{} // equal to none that is wanted
	}
	for _, want := range r.wanted {
		n, err := netlinkRoute(want, r.index)
		if err != nil {
			return 0, err
		}
		if was, ok := kernel[want.id()]; ok && routeKey(was) == routeKey(n) {
			r.have[want.id()] = want
		}
	}
	changed, err = r.install()
	if err != nil || !r.labels.Address6.IsValid() {
		return changed, err
	}
	n, err := restoreLabels(r.h, r.labels)
	return changed + n, err
}

// install makes r.have what is wanted, with r.mu held.
func (r *Routes) install() (changed int, err error) {
	r.up = nil
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

// isDown reports whether the kernel refused a route because a port of it is
// down.
func isDown(err error) bool { return errors.Is(err, unix.ENETDOWN) || errors.Is(err, unix.ENETUNREACH) }

func (r *Routes) put(want Route) error {
	n, err := netlinkRoute(want, r.index)
	if err != nil {
		return err
	}
	if err := r.h.RouteReplace(&n); err != nil {
		return explain(fmt.Errorf("%s: %w", want.command(), err))
	}
	return nil
}

// replaceOverLive installs a route over those of its ports that are up; what
// it had over others is removed.
func (r *Routes) replaceOverLive(want Route) (changed int, err error) {
	id := want.id()
	if err := r.findUp(); err != nil {
		return 0, err
	}
	less := want
	less.Via = slices.DeleteFunc(slices.Clone(want.Via), func(h Hop) bool { return !r.up[h.Port] })
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

func (r *Routes) findUp() error {
	if r.up != nil {
		return nil
	}
	links, err := portLinks(r.h, r.ports)
	if err != nil {
		return err
	}
	r.up = make(map[string]bool, len(links))
	for _, link := range links {
		r.up[link.Attrs().Name] = link.Attrs().Flags&net.FlagUp != 0
	}
	return nil
}
