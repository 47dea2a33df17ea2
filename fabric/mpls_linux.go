package fabric

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"weft/encap"
	"weft/internal/kernel"
)

// hasMPLS reports whether the kernel forwards by MPLS in the calling thread's
// network namespace.
func hasMPLS() bool {
	_, err := os.Stat("/proc/sys/net/mpls")
	return !errors.Is(err, fs.ErrNotExist)
}

// syncMPLS makes the MPLS routes with our protocol number those planned, where
// the kernel has any.
func (r *Report) syncMPLS(h *netlink.Handle, ports []netlink.Link, p NodePlan) (changed int, err error) {
	if !hasMPLS() {
		if len(p.MPLS) > 0 {
			r.Notes = append(r.Notes, "this kernel has no module mpls_router: packets with MPLS labels are dropped")
		}
		return 0, nil
	}
	if err := r.applySysctls(p.mplsSysctls()); err != nil {
		return 0, err
	}
	list, err := kernel.Dumped(func() ([]netlink.Route, error) {
		return h.RouteListFiltered(nl.FAMILY_MPLS, &netlink.Route{Protocol: kernel.RouteProtocol}, netlink.RT_FILTER_PROTOCOL)
	})
	if err != nil {
		return changed, kernel.Explain(fmt.Errorf("list the MPLS routes: %w", err))
	}
	old := make(map[int]netlink.Route)
	for _, have := range list {
		if have.MPLSDst != nil {
			old[*have.MPLSDst] = have
		}
	}
	index := portIndexes(ports)
	for _, planned := range p.MPLS {
		want := netlinkMPLS(planned, index)
		was, ok := old[planned.Label]
		delete(old, planned.Label)
		if ok && was.LinkIndex == want.LinkIndex && was.Via != nil && was.Via.Equal(want.Via) {
			continue
		}
		if err := h.RouteReplace(&want); err != nil {
			return changed, kernel.Explain(fmt.Errorf("%s: %w", planned.command(), err))
		}
		changed++
	}
	for label := range old {
		gone := netlink.Route{Family: nl.FAMILY_MPLS, MPLSDst: &label, Protocol: kernel.RouteProtocol}
		if err := h.RouteDel(&gone); err != nil && !errors.Is(err, unix.ESRCH) {
			return changed, kernel.Explain(fmt.Errorf("remove the route of MPLS label %d: %w", label, err))
		}
		changed++
	}
	if len(p.MPLS) > 0 {
		r.Labels = append(r.Labels, encap.CarrierMPLS)
	}
	return changed, nil
}

// netlinkMPLS is the route that pops a label: one without a new label.
func netlinkMPLS(r MPLSRoute, index map[string]int) netlink.Route {
	label := r.Label
	return netlink.Route{
		Family: nl.FAMILY_MPLS, MPLSDst: &label, Protocol: kernel.RouteProtocol, Table: unix.RT_TABLE_MAIN,
		LinkIndex: index[r.Hop.Port], Via: &netlink.Via{AddrFamily: nl.FAMILY_V4, Addr: r.Hop.Addr.AsSlice()},
	}
}
