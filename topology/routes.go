package topology

import "net/netip"

// Route is one entry of a node's static routing table. With several Ports, the switch's
// own ECMP spreads packets without an outer header over them. Without Ports packets end
// here, so that packets to addresses that nobody has do not go round in circles. Any
// other route to the same prefix is preferred.
type Route struct {
	Prefix netip.Prefix
	Ports  []int
	// Weights are of Ports, from 1 to 16, in proportion to how much of the traffic to the
	// prefix they can carry (WCMP); nil if that is equal. It is not equal where rates differ,
	// or links are down in only some of the ways.
	Weights []int
	// Groups are of Ports, from 0: those of one group are symmetric, with the same ways behind
	// them, on which queues are equally long (DRILL §3.4.1). nil: all are, or it was not asked
	// for. See GroupedRoutes.
	Groups []int
	// Drop says that packets which end here are dropped silently. Otherwise they are
	// refused with an ICMP unreachable. Only an edge switch knows that there is no way to
	// a destination. A switch above it knows only that there is no way from here; its
	// error would end an attempt to connect, although the next SYN would take another
	// path.
	Drop bool
	// Virtual is 0 for the main table. v+1 means that the route is only for packets that
	// were decapsulated at virtual spine v of this node: at address number v of its
	// BouncingAddrs. Such a route is preferred to the main table, whatever the prefixes'
	// lengths. Without one the main table decides.
	Virtual int
}

// Routes returns the static routing table of a node (DRB §4.1): a /32 for each bouncing
// switch going up, a prefix for each subnet going down, ECMP next hops for packets
// without an outer header. Ports whose link is down are left out. So are ports beyond
// which no way up and down leads to a rack: such racks have a route of their own, without
// ports if there is no way at all.
//
// It is nil where the fabric is data: there the switches have a routing protocol.
//
// This repairs the ways of packets without an outer header. Encapsulated packets have one
// path, and their senders choose another one.
func (t *Topology) Routes(id NodeID) []Route { return t.routes(id, nil) }

// GroupedRoutes is Routes with Groups, for switches that choose for each packet. There are
// more routes, since racks that are reached over the same ports may have other groups. It
// takes as long as the Quiver takes for one rack and all others. In VL2 there are no groups,
// since packets without an outer header take ways that the Quiver has not.
func (t *Topology) GroupedRoutes(id NodeID) []Route {
	if t.view != nil || t.kind == vl2 || t.symmetric() {
		return t.routes(id, nil)
	}
	return t.routes(id, t.Quiver())
}

func (t *Topology) routes(id NodeID, q *Quiver) []Route {
	if t.view != nil {
		return nil
	}
	p := t.position(id)
	r := routeBuilder{t: t, at: p, ports: t.Ports(id), silent: p.layer == LayerAgg || p.layer == LayerCore, capacities: t.capacitiesOfPorts(), quiver: q}
	switch p.layer {
	case LayerHost:
		// While no stack is embedded, or its packets would come back up.
		r.add(t.EmbeddedAddr(id), 32)
		r.add(octets(0, 0, 0, 0), 0, 0)
	case LayerEdge:
		t.edgeRoutes(&r, p)
	case LayerAgg:
		t.aggRoutes(&r, p)
	case LayerCore:
		t.coreRoutes(&r, p)
	}
	return r.routes
}

func (t *Topology) edgeRoutes(r *routeBuilder, p position) {
	for h := range t.hosts {
		host := t.id(position{LayerHost, p.pod, p.sw, h})
		r.add(t.Node(host).Addr, 32, h)
		r.add(t.EmbeddedAddr(host), 32, h)
	}
	for g := range t.aggs {
		r.add(t.addr(position{layer: LayerAgg, pod: p.pod, sw: g}), 32, t.hosts+g)
	}
	for g := range t.aggs {
		for c := range t.cores {
			r.add(t.addr(position{layer: LayerCore, pod: g, sw: c}), 32, t.hosts+g)
		}
	}
	r.add(t.subnet(p.pod, p.sw), 24)
	r.ups(t.hosts, func(pod, edge int) uplinks { return t.edgeUplinks(p, pod, edge) },
		func(g, pod, edge int) float64 { return r.capacities.ofEdge(p, g, pod, edge) })
}

func (t *Topology) aggRoutes(r *routeBuilder, p position) {
	for e := range t.edges {
		r.addOrEnd(t.subnet(p.pod, e), 24, e)
	}
	for c := range t.cores {
		r.add(t.addr(position{layer: LayerCore, pod: p.sw, sw: c}), 32, t.edges+c)
	}
	if !t.flat() {
		r.add(octets(10, p.pod, 0, 0), 16)
	}
	if t.cores == 0 {
		r.add(octets(10, 0, 0, 0), 8)
		return
	}
	r.ups(t.edges, func(pod, edge int) uplinks {
		if pod == p.pod {
			return nil // it is below
		}
		return t.aggUplinks(p, pod, edge)
	}, func(c, pod, edge int) float64 { return r.capacities.ofAgg(p, c, pod, edge) })
}

func (t *Topology) coreRoutes(r *routeBuilder, p position) {
	r.add(octets(10, 0, 0, 0), 8)
	if !t.flat() {
		for pod := range t.pods {
			r.add(octets(10, pod, 0, 0), 16, pod)
		}
		return
	}
	for pod := range t.pods {
		for e := range t.edges {
			var list uplinks // of virtual spines, down
			for v := range t.virtual() {
				// A virtual spine cannot do without its aggregation switch, but
				// the spine can.
				if t.Live(t.edgeLink(pod, e, v)) && t.Live(t.coreLink(pod, v, p.sw)) {
					list = append(list, v)
				}
			}
			if len(list) > 0 {
				r.addWeighted(t.subnet(pod, e), 24, t.corePorts(pod, list),
					r.capacities.weights(list, func(v int) float64 { return r.capacities.ofSpine(v, p.sw, pod, e) }))
			}
		}
	}
	for v := range t.virtual() {
		for pod := range t.pods {
			for e := range t.edges {
				if t.Live(t.edgeLink(pod, e, v)) {
					r.addVirtual(v+1, t.subnet(pod, e), 24, t.corePort(pod, v))
				}
			}
		}
	}
}

// corePorts returns a spine's ports to a pod, of virtual spines.
func (t *Topology) corePorts(pod int, virtual uplinks) []int {
	ports := make([]int, len(virtual))
	for i, v := range virtual {
		ports[i] = t.corePort(pod, v)
	}
	return ports
}

type routeBuilder struct {
	t      *Topology
	at     position
	ports  []Port
	silent bool // see Route.Drop
	routes []Route

	capacities *capacities // nil: all are equal
	quiver     *Quiver     // nil: without groups
}

// addWeighted appends a route over live ports.
func (r *routeBuilder) addWeighted(addr netip.Addr, bits int, ports, weights []int) {
	r.routes = append(r.routes, Route{Prefix: netip.PrefixFrom(addr, bits), Ports: ports, Weights: weights, Drop: len(ports) == 0 && r.silent})
}

// add appends a route over those of the ports that are live; a route that had
// ports and has none left is dropped.
func (r *routeBuilder) add(addr netip.Addr, bits int, ports ...int) {
	r.addVirtual(0, addr, bits, ports...)
}

func (r *routeBuilder) addVirtual(virtual int, addr netip.Addr, bits int, ports ...int) {
	var live []int
	for _, i := range ports {
		if r.t.Live(r.ports[i].Link) {
			live = append(live, i)
		}
	}
	if len(live) == 0 && len(ports) > 0 {
		return
	}
	r.routes = append(r.routes, Route{Prefix: netip.PrefixFrom(addr, bits), Ports: live, Drop: len(live) == 0 && r.silent, Virtual: virtual})
}

// addOrEnd appends a route, without a port if that is not live.
func (r *routeBuilder) addOrEnd(addr netip.Addr, bits, port int) {
	if r.t.Live(r.ports[port].Link) {
		r.add(addr, bits, port)
	} else {
		r.add(addr, bits)
	}
}

func (r *routeBuilder) upPorts() []int {
	var up []int
	for i, p := range r.ports {
		if p.Up {
			up = append(up, i)
		}
	}
	return up
}
