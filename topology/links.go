package topology

import "iter"

// NumLinks returns the number of cables, live or not.
func (t *Topology) NumLinks() int {
	return t.numHosts() + t.pods*t.edges*t.aggs + t.pods*t.aggs*t.cores
}

func (t *Topology) hostLink(host NodeID) LinkID { return LinkID(host) }

func (t *Topology) edgeLink(pod, edge, agg int) LinkID {
	return LinkID(t.numHosts() + (pod*t.edges+edge)*t.aggs + agg)
}

func (t *Topology) coreLink(pod, agg, core int) LinkID {
	return LinkID(t.numHosts() + t.pods*t.edges*t.aggs + (pod*t.aggs+agg)*t.cores + core)
}

// Link returns the link with the given number, 0 to NumLinks-1.
func (t *Topology) Link(id LinkID) Link {
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
		t.edges + core, pod}
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

// Ports returns a node's ports in order: those that lead down first.
func (t *Topology) Ports(id NodeID) []Port {
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
		for pod := range t.pods {
			links = append(links, t.coreLink(pod, p.pod, p.sw))
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

// linkSet is a bit set of links.
type linkSet []uint64

func (s *linkSet) has(l LinkID) bool {
	return s != nil && (*s)[l/64]&(1<<(l%64)) != 0
}

// Without returns t with the given links down besides those that are down
// already. t is unchanged. The paths and routes of the result avoid them.
func (t *Topology) Without(down ...LinkID) *Topology {
	set := make(linkSet, (t.NumLinks()+63)/64)
	if t.down != nil {
		copy(set, *t.down)
	}
	for _, l := range down {
		set[l/64] |= 1 << (l % 64)
	}
	u := *t
	u.down = &set
	return &u
}

// WithoutNode returns t with every link of a node down.
func (t *Topology) WithoutNode(id NodeID) *Topology {
	var down []LinkID
	for _, p := range t.Ports(id) {
		down = append(down, p.Link)
	}
	return t.Without(down...)
}

// Live reports whether a link is up.
func (t *Topology) Live(l LinkID) bool { return !t.down.has(l) }
