package lab

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
	"weft/topology"
	"weft/topology/graph"
)

// routesLimit is how long the switches of a Graph may take to find all routes. FRR alone
// takes a second or two, and starting it a tenth of a second of a processor each switch.
const routesLimit = time.Minute

// mostWays is how many ways FRR is told to have to one prefix.
const mostWays = 64

// ways counts the shortest ways by which each switch may send to each prefix that another
// one announces. Every switch has its own AS, so these are the ones that BGP uses.
func ways(g *graph.Graph, down graph.Down) map[graph.NodeID]map[netip.Prefix]int {
	first, _ := g.Tier(1)
	sources := make(map[netip.Prefix][]graph.NodeID)
	for id := first; int(id) < g.NumNodes(); id++ {
		n := g.Node(id)
		for _, a := range n.Addresses {
			p := netip.PrefixFrom(a, a.BitLen())
			sources[p] = append(sources[p], id)
		}
		for _, p := range n.Prefixes {
			sources[p] = append(sources[p], id)
		}
	}
	all := make(map[graph.NodeID]map[netip.Prefix]int)
	for id := first; int(id) < g.NumNodes(); id++ {
		all[id] = make(map[netip.Prefix]int)
	}
	known := make(map[string]map[graph.NodeID]int) // by sources: the same for all their prefixes
	for p, from := range sources {
		key := fmt.Sprint(from)
		if known[key] == nil {
			known[key] = waysTo(g, from, down)
		}
		for id, n := range known[key] {
			all[id][p] = n
		}
	}
	return all
}

// waysTo counts the links of each switch by which a shortest way leads to one of some
// switches.
func waysTo(g *graph.Graph, to []graph.NodeID, down graph.Down) map[graph.NodeID]int {
	far := make(map[graph.NodeID]int)
	for _, id := range to {
		far[id] = 0
	}
	count := make(map[graph.NodeID]int)
	for level := to; len(level) > 0; {
		var next []graph.NodeID
		for _, n := range level {
			for _, p := range slices.Concat(g.Up(n), g.Down(n)) {
				if g.Node(p.Peer).Tier == 0 || down(p.Link) {
					continue
				}
				d, seen := far[p.Peer]
				if !seen {
					d = far[n] + 1
					far[p.Peer] = d
					next = append(next, p.Peer)
				}
				if d == far[n]+1 {
					count[p.Peer] = min(count[p.Peer]+1, mostWays)
				}
			}
		}
		level = next
	}
	return count
}

// awaitRoutes waits until the switches of a Graph have all the routes over links that have
// not failed. If they do not find them, it notes what is missing.
func (b *builder) awaitRoutes(ctx context.Context, failed map[topology.LinkID]FailureMode) error {
	if b.cfg.Graph == nil {
		return nil
	}
	want := ways(b.cfg.Graph, func(l graph.LinkID) bool { return failed[topology.LinkID(l)] != "" })
	missing := ""
	end := time.Now().Add(routesLimit)
	for _, id := range slices.Sorted(maps.Keys(want)) {
		for {
			have, err := b.cfg.routes(topology.NodeID(id))
			if err != nil {
				return err
			}
			what := lacks(have, want[id])
			if what == "" {
				break
			}
			if err := b.cfg.router(topology.NodeID(id)).Check(); err != nil {
				return fmt.Errorf("%s: %w", b.cfg.Graph.Node(id).Name, err)
			}
			if time.Now().After(end) {
				missing = cmp.Or(missing, fmt.Sprintf("%s has %s", b.cfg.Graph.Node(id).Name, what))
				break
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	if missing != "" {
		b.note(fmt.Sprintf("BGP has not found all routes within %v: %s", routesLimit, missing))
	}
	return nil
}

// lacks says of one prefix to which there are fewer ways than wanted that this is so.
func lacks(have, want map[netip.Prefix]int) string {
	for p, n := range want {
		if have[p] < n {
			return fmt.Sprintf("%d of %d ways to %v", have[p], n, p)
		}
	}
	return ""
}

// routes returns the number of ways that a switch's kernel has to each prefix.
func (c Config) routes(id topology.NodeID) (map[netip.Prefix]int, error) {
	have := make(map[netip.Prefix]int)
	err := kernel.InNamespace(c.namespace(c.plant().Node(id).Name), func() error {
		h, err := netlink.NewHandle(kernel.Families...)
		if err != nil {
			return kernel.Explain(err)
		}
		defer h.Close()
		for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
			list, err := kernel.Dumped(func() ([]netlink.Route, error) {
				return h.RouteListFiltered(family, &netlink.Route{Protocol: unix.RTPROT_BGP}, netlink.RT_FILTER_PROTOCOL)
			})
			if err != nil {
				return kernel.Explain(fmt.Errorf("routes: %w", err))
			}
			for _, r := range list {
				if r.Dst == nil {
					continue
				}
				a, _ := netip.AddrFromSlice(r.Dst.IP)
				bits, _ := r.Dst.Mask.Size()
				if family == netlink.FAMILY_V4 {
					a = a.Unmap()
				}
				have[netip.PrefixFrom(a, bits)] += max(1, len(r.MultiPath))
			}
		}
		return nil
	})
	return have, err
}
