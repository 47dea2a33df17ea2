package topology

import "net/netip"

// Route is one entry of a node's static routing table. With several Ports,
// un-encapsulated packets are spread over them by the switch's own ECMP. No
// Ports means that the destination is refused (unreachable), so that packets
// to nobody are not sent round in circles; any other route to the same prefix
// comes before it.
type Route struct {
	Prefix netip.Prefix
	Ports  []int
}

// Routes returns the static routing table of a node, longest prefixes first
// within their kind (DRB §4.1): a /32 per bouncing switch going up, a prefix
// per subnet going down, ECMP next hops for what is not encapsulated. Ports
// whose link is down are left out.
func (t *Topology) Routes(id NodeID) []Route {
	p := t.position(id)
	r := routeBuilder{t: t, ports: t.Ports(id)}
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
		for pod := range t.pods {
			r.add(octets(10, pod, 0, 0), 16, pod)
		}
	}
	return r.routes
}

func (t *Topology) edgeRoutes(r *routeBuilder, p position) {
	for h := range t.hosts {
		host := t.id(position{LayerHost, p.pod, p.sw, h})
		r.add(t.Node(host).Addr, 32, h)
		r.add(t.EmbeddedAddr(host), 32, h)
	}
	for a := range t.aggs {
		r.add(t.addr(position{layer: LayerAgg, pod: p.pod, sw: a}), 32, t.hosts+a)
	}
	for c := range t.numCores() {
		r.add(t.Node(t.core(c)).Addr, 32, t.hosts+c/t.cores)
	}
	r.add(octets(10, p.pod, p.sw, 0), 24)
	r.add(octets(0, 0, 0, 0), 0, r.upPorts()...)
}

func (t *Topology) aggRoutes(r *routeBuilder, p position) {
	for e := range t.edges {
		r.add(octets(10, p.pod, e, 0), 24, e)
	}
	for c := range t.cores {
		r.add(t.addr(position{layer: LayerCore, pod: p.sw, sw: c}), 32, t.edges+c)
	}
	r.add(octets(10, p.pod, 0, 0), 16)
	r.add(octets(0, 0, 0, 0), 0, r.upPorts()...)
}

type routeBuilder struct {
	t      *Topology
	ports  []Port
	routes []Route
}

// add appends a route over those of the ports that are live; a route that had
// ports and has none left is dropped.
func (r *routeBuilder) add(addr netip.Addr, bits int, ports ...int) {
	var live []int
	for _, i := range ports {
		if r.t.Live(r.ports[i].Link) {
			live = append(live, i)
		}
	}
	if len(live) == 0 && len(ports) > 0 {
		return
	}
	r.routes = append(r.routes, Route{netip.PrefixFrom(addr, bits), live})
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
