package topology

import "iter"

// NumLinks returns the number of cables, live or not.
func (t *Topology) NumLinks() int {
	if t.view != nil {
		return len(t.view.links)
	}
	return t.numHosts() + t.pods*t.edges*t.aggs + t.pods*t.aggs*t.cores
}

func (t *Topology) hostLink(host NodeID) LinkID { return LinkID(host) }

func (t *Topology) edgeLink(pod, edge, agg int) LinkID {
	return LinkID(t.numHosts() + (pod*t.edges+edge)*t.aggs + agg)
}

func (t *Topology) coreLink(pod, agg, core int) LinkID {
	return LinkID(t.numHosts() + t.pods*t.edges*t.aggs + (pod*t.aggs+agg)*t.cores + core)
}

// corePort returns the port of a core switch to a pod; of the group that is
// the core's, or of the virtual spine in VL2, whose ports come one virtual
// spine after the other.
func (t *Topology) corePort(pod, group int) int {
	if t.kind == vl2 {
		return group*t.pods + pod
	}
	return pod
}

// Link returns the link with the given number, 0 to NumLinks-1.
func (t *Topology) Link(id LinkID) Link {
	if t.view != nil {
		return t.view.links[id]
	}
	i := int(id)
	if i < t.numHosts() {
		p := t.position(NodeID(i))
		return Link{id, NodeID(i), t.id(position{layer: LayerEdge, pod: p.pod, sw: p.sw}), 0, p.host}
	}
	i -= t.numHosts()
	if n := t.pods * t.edges * t.aggs; i < n {
		agg, rack := i%t.aggs, i/t.aggs
		pod, edge := rack/t.edges, rack%t.edges
		return Link{id,
			t.id(position{layer: LayerEdge, pod: pod, sw: edge}),
			t.id(position{layer: LayerAgg, pod: pod, sw: agg}),
			t.hosts + agg, edge}
	} else {
		i -= n
	}
	core, a := i%t.cores, i/t.cores
	pod, agg := a/t.aggs, a%t.aggs
	return Link{id,
		t.id(position{layer: LayerAgg, pod: pod, sw: agg}),
		t.id(position{layer: LayerCore, pod: agg, sw: core}),
		t.edges + core, t.corePort(pod, agg)}
}

// Links yields every link in the order of their numbers, live or not.
func (t *Topology) Links() iter.Seq[Link] {
	return func(yield func(Link) bool) {
		for i := range t.NumLinks() {
			if !yield(t.Link(LinkID(i))) {
				return
			}
		}
	}
}

// ChoosesUp reports whether a node has several ports up.
func (t *Topology) ChoosesUp(id NodeID) bool {
	ports := t.Ports(id)
	return len(ports) > 1 && ports[len(ports)-2].Up // those up are the last
}

// Ports returns a node's ports in order: those that lead down first. Where the fabric is
// data their numbers are not the switches'.
func (t *Topology) Ports(id NodeID) []Port {
	if t.view != nil {
		return t.view.ports(id)
	}
	p := t.position(id)
	var links []LinkID
	switch p.layer {
	case LayerHost:
		links = append(links, t.hostLink(id))
	case LayerEdge:
		for h := range t.hosts {
			links = append(links, t.hostLink(t.id(position{LayerHost, p.pod, p.sw, h})))
		}
		for a := range t.aggs {
			links = append(links, t.edgeLink(p.pod, p.sw, a))
		}
	case LayerAgg:
		for e := range t.edges {
			links = append(links, t.edgeLink(p.pod, e, p.sw))
		}
		for c := range t.cores {
			links = append(links, t.coreLink(p.pod, p.sw, c))
		}
	case LayerCore:
		for v := range t.virtual() {
			for pod := range t.pods {
				links = append(links, t.coreLink(pod, p.pod+v, p.sw))
			}
		}
	}
	ports := make([]Port, len(links))
	for i, l := range links {
		ports[i] = t.portOf(id, l, i)
	}
	return ports
}

func (t *Topology) portOf(id NodeID, l LinkID, index int) Port {
	k := t.Link(l)
	if k.A == id {
		return Port{index, l, k.B, k.PortB, true}
	}
	return Port{index, l, k.A, k.PortA, false}
}
