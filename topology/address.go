package topology

import "net/netip"

const (
	// firstHostID is the last octet of a switch's first host: 1 is the switch
	// (thesis §3.1.2).
	firstHostID = 2
	// embeddedOffset is added to a host's last octet for the embedded stack's
	// address, which the edge switch routes to the same port, so that programs on
	// the host's kernel and on weft live side by side.
	embeddedOffset = 128
	// maxRackHosts leaves a rack's last address, the embedded stack's of its
	// last host, below 255.
	maxRackHosts = 254 - embeddedOffset - firstHostID + 1
	// flatCoreOctet is the second octet of a VL2's virtual spines.
	flatCoreOctet = 255
)

func octets(a, b, c, d int) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(a), byte(b), byte(c), byte(d)})
}

// flat reports whether racks are numbered through the whole fabric rather than by pod:
// leaf-spine and VL2. There the rack with number n is 10.(n div 256).(n mod 256).0/24.
// Aggregation switches (a leaf-spine's spines) count down from the top. Virtual spine
// 3.r, number i of group j, is 10.255.(j+1).(i+1).
func (t *Topology) flat() bool { return t.kind != fatTree }

// flatAggTop is the second octet of the first 256 aggregation switches of a
// flat fabric; the next 256 have one less.
func (s shape) flatAggTop() int {
	if s.kind == vl2 {
		return flatCoreOctet - 1
	}
	return flatCoreOctet
}

// flatAgg returns the address of a flat fabric's n-th aggregation switch.
func (t *Topology) flatAgg(n int) netip.Addr {
	return octets(10, t.flatAggTop()-n>>8, n&255, 1)
}

// coreOctet is the second octet of cores.
func (t *Topology) coreOctet() int {
	if t.flat() {
		return flatCoreOctet
	}
	return t.pods
}

// subnet returns the first address of a rack's /24.
func (t *Topology) subnet(pod, edge int) netip.Addr {
	if t.flat() {
		rack := pod*t.edges + edge
		return octets(10, rack>>8, rack&255, 0)
	}
	return octets(10, pod, edge, 0)
}

// addr follows thesis §3.1.2 for fat-trees: pod switches 10.pod.switch.1 with
// the edge switches left of the aggregation switches, cores 10.pods.j.i with i
// and j from 1, hosts 10.pod.switch.id with id from 2. See flat for the others.
// The position of a core may be a virtual spine's.
func (t *Topology) addr(p position) netip.Addr {
	switch {
	case p.layer == LayerCore:
		return octets(10, t.coreOctet(), p.pod+1, p.sw+1)
	case p.layer == LayerAgg && t.flat():
		return t.flatAgg(p.pod*t.aggs + p.sw)
	case p.layer == LayerAgg:
		return octets(10, p.pod, t.edges+p.sw, 1)
	}
	a := t.subnet(p.pod, p.sw).As4()
	a[3] = 1
	if p.layer == LayerHost {
		a[3] = byte(p.host + firstHostID)
	}
	return netip.AddrFrom4(a)
}

// ByAddr finds the node that owns an address. A host owns its kernel's and its embedded
// stack's address, a spine of VL2 those of its virtual spines.
func (t *Topology) ByAddr(addr netip.Addr) (NodeID, bool) {
	if t.view != nil {
		id, ok := t.view.byAddr[addr]
		return id, ok
	}
	if !addr.Is4() {
		return 0, false
	}
	a := addr.As4()
	if a[0] != 10 {
		return 0, false
	}
	p, ok := t.at(int(a[1]), int(a[2]), int(a[3]))
	if !ok {
		return 0, false
	}
	return t.id(p), true
}

// at is addr's inverse on 10.x.y.z.
func (t *Topology) at(x, y, z int) (position, bool) {
	if t.cores > 0 && x == t.coreOctet() {
		p := position{layer: LayerCore, pod: y - 1, sw: z - 1}
		return p, p.pod >= 0 && p.pod < t.aggs && p.sw >= 0 && p.sw < t.cores
	}
	if !t.flat() {
		if x >= t.pods || y >= t.edges+t.aggs {
			return position{}, false
		}
		if y >= t.edges {
			return position{layer: LayerAgg, pod: x, sw: y - t.edges}, z == 1
		}
		return t.inRack(x, y, z)
	}
	if n := (t.flatAggTop()-x)<<8 | y; x <= t.flatAggTop() && n < t.numAggs() {
		return position{layer: LayerAgg, pod: n / t.aggs, sw: n % t.aggs}, z == 1
	}
	if n := x<<8 | y; n < t.numEdges() {
		return t.inRack(n/t.edges, n%t.edges, z)
	}
	return position{}, false
}

func (t *Topology) inRack(pod, edge, z int) (position, bool) {
	if z == 1 {
		return position{layer: LayerEdge, pod: pod, sw: edge}, true
	}
	if z >= embeddedOffset {
		z -= embeddedOffset
	}
	z -= firstHostID
	return position{LayerHost, pod, edge, z}, z >= 0 && z < t.hosts
}

// EmbeddedAddr returns the address of the embedded stack on a host: the
// host's own with 128 added to the last octet. Where the fabric is data it is the zero Addr.
func (t *Topology) EmbeddedAddr(host NodeID) netip.Addr {
	if t.view != nil {
		return netip.Addr{}
	}
	a := t.addr(t.position(host)).As4()
	a[3] += embeddedOffset
	return netip.AddrFrom4(a)
}

// BouncingAddrs returns the addresses at which a node takes off outer headers and routes
// the inner packet. For an aggregation or a core switch it is the switch's own. For a
// spine of VL2 there is one for each virtual spine, in their order. Other nodes have
// none.
func (t *Topology) BouncingAddrs(id NodeID) []netip.Addr {
	if t.view != nil {
		if n := t.view.nodes[id]; n.Layer >= LayerAgg {
			return []netip.Addr{n.Addr}
		}
		return nil
	}
	p := t.position(id)
	switch p.layer {
	case LayerAgg:
		return []netip.Addr{t.addr(p)}
	case LayerCore:
		list := make([]netip.Addr, t.virtual())
		for v := range list {
			list[v] = t.addr(position{layer: LayerCore, pod: p.pod + v, sw: p.sw})
		}
		return list
	}
	return nil
}
