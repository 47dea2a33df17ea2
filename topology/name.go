package topology

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// name is made of digits of the address, but for the aggregation switches of
// flat fabrics, whose addresses count down: those are called by their number.
func (t *Topology) name(p position) string {
	a := t.addr(p).As4()
	switch {
	case p.layer == LayerHost:
		return fmt.Sprintf("h%d.%d.%d", a[1], a[2], a[3])
	case p.layer == LayerEdge:
		return fmt.Sprintf("e%d.%d", a[1], a[2])
	case p.layer == LayerAgg && t.flat():
		n := p.pod*t.aggs + p.sw
		return fmt.Sprintf("a%d.%d", n>>8, n&255)
	case p.layer == LayerAgg:
		return fmt.Sprintf("a%d.%d", a[1], a[2])
	default:
		return fmt.Sprintf("c%d.%d", a[2], a[3])
	}
}

// byName finds the node whose name or DRB number (3.r, of cores) s is.
func (t *Topology) byName(s string) (NodeID, bool) {
	if r, ok := strings.CutPrefix(s, "3."); ok {
		n, err := strconv.Atoi(r)
		if err != nil || n < 0 || n >= t.aggs*t.cores || strconv.Itoa(n) != r {
			return 0, false
		}
		return t.core(n), true
	}
	if len(s) < 2 {
		return 0, false
	}
	d, n, ok := digits(s[1:])
	if !ok {
		return 0, false
	}
	var addr netip.Addr
	switch {
	case s[0] == 'h' && n == 3:
		addr = octets(10, d[0], d[1], d[2])
	case s[0] == 'a' && n == 2 && t.flat():
		addr = t.flatAgg(d[0]<<8 | d[1])
	case (s[0] == 'e' || s[0] == 'a') && n == 2:
		addr = octets(10, d[0], d[1], 1)
	case s[0] == 'c' && n == 2:
		addr = octets(10, t.coreOctet(), d[0], d[1])
	default:
		return 0, false
	}
	id, ok := t.ByAddr(addr)
	// The name must be the node's own: 10.0.0.130 is h0.0.2's second address,
	// but h0.0.130 is nobody.
	if !ok || t.name(t.position(id)) != s {
		return 0, false
	}
	return id, true
}

// digits reads up to three numbers from 0 to 255, joined by dots.
func digits(s string) (d [3]int, n int, ok bool) {
	parts := strings.Split(s, ".")
	if len(parts) > len(d) {
		return d, 0, false
	}
	for i, part := range parts {
		v, err := strconv.Atoi(part)
		if err != nil || v < 0 || v > 255 || strconv.Itoa(v) != part {
			return d, 0, false
		}
		d[i] = v
	}
	return d, len(parts), true
}

// Lookup finds a node by a name (h0.0.2, e0.1, a2.2, c1.2), by DRB's number of a
// core (3.0), or by an address. The number and the address of a virtual spine
// find the physical switch.
func (t *Topology) Lookup(s string) (Node, error) {
	if t.view != nil {
		if id, ok := t.view.byName[s]; ok {
			return t.Node(id), nil
		}
	}
	if addr, err := netip.ParseAddr(s); err == nil {
		if id, ok := t.ByAddr(addr); ok {
			return t.Node(id), nil
		}
		return Node{}, fmt.Errorf("address %s: no node of %s has it; the first host has %s", s, t.spec, t.Node(0).Addr)
	}
	if t.view != nil {
		return Node{}, fmt.Errorf("node %q: not in %s; it has %s and %d racks and switches more", s, t.spec, t.nameOf(0), t.NumNodes()-1)
	}
	if id, ok := t.byName(s); ok {
		return t.Node(id), nil
	}
	return Node{}, fmt.Errorf("node %q: not in %s; %s", s, t.spec, t.naming())
}

// HostName returns the name of a host that HostAt has found, its address if it has none.
func (t *Topology) HostName(host netip.Addr) string {
	if id, ok := t.ByAddr(host); ok {
		return t.nameOf(id)
	}
	return host.String()
}

func (t *Topology) nameOf(id NodeID) string {
	if t.view != nil {
		return t.view.nodes[id].Name
	}
	return t.name(t.position(id))
}

// naming says how nodes are called.
func (t *Topology) naming() string {
	high, low := "POD", "SWITCH"
	if t.flat() {
		high, low = "HIGH", "LOW"
	}
	s := fmt.Sprintf("name a host h%s.%s.ID (%s), an edge switch e%s.%s (%s), an aggregation switch a%s.%s (%s), ",
		high, low, t.nameRange(0, t.numHosts()), high, low, t.nameRange(t.numHosts(), t.numEdges()),
		high, low, t.nameRange(t.numHosts()+t.numEdges(), t.numAggs()))
	if n := t.numCores(); n > 0 {
		s += fmt.Sprintf("a core switch cJ.I (%s) or 3.NUMBER (3.0 to 3.%d), ",
			t.nameRange(t.NumNodes()-n, n), t.aggs*t.cores-1)
	}
	return s + "or give an address"
}

func (t *Topology) nameRange(first, n int) string {
	return t.Node(NodeID(first)).Name + " to " + t.Node(NodeID(first+n-1)).Name
}

// CoreNumber returns r of DRB's 3.r for a core switch; for a spine of VL2 that
// of its first virtual spine.
func (t *Topology) CoreNumber(id NodeID) (r int, ok bool) {
	if t.view != nil {
		return 0, false
	}
	p := t.position(id)
	return p.pod*t.cores + p.sw, p.layer == LayerCore
}

// Name returns the name of the bouncing switch of path number n. For a core it is
// DRB's number, which in VL2 is that of a virtual spine.
func (s PathSet) Name(n int) string {
	if s.rack != nil {
		return s.t.nameOf(s.Bounce(n))
	}
	if p := s.bounce(n); p.layer != LayerCore {
		return s.t.name(p)
	}
	return "3." + strconv.Itoa(n)
}
