package topology

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// firstHostID is the last octet of a switch's first host: 1 is the switch
// (thesis §3.1.2).
const firstHostID = 2

// embeddedOffset is added to a host's last octet for the embedded stack's
// address, which the edge switch routes to the same port, so that programs on
// the host's kernel and on weft live side by side.
const embeddedOffset = 128

func octets(a, b, c, d int) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(a), byte(b), byte(c), byte(d)})
}

// addr follows thesis §3.1.2: pod switches 10.pod.switch.1 with the edge
// switches left of the aggregation switches, cores 10.pods.j.i with i and j
// from 1, hosts 10.pod.switch.id with id from 2.
func (t *Topology) addr(p position) netip.Addr {
	switch p.layer {
	case LayerHost:
		return octets(10, p.pod, p.sw, p.host+firstHostID)
	case LayerEdge:
		return octets(10, p.pod, p.sw, 1)
	case LayerAgg:
		return octets(10, p.pod, t.edges+p.sw, 1)
	default:
		return octets(10, t.pods, p.pod+1, p.sw+1)
	}
}

func (t *Topology) name(p position) string {
	a := t.addr(p).As4()
	switch p.layer {
	case LayerHost:
		return fmt.Sprintf("h%d.%d.%d", a[1], a[2], a[3])
	case LayerEdge:
		return fmt.Sprintf("e%d.%d", a[1], a[2])
	case LayerAgg:
		return fmt.Sprintf("a%d.%d", a[1], a[2])
	default:
		return fmt.Sprintf("c%d.%d", a[2], a[3])
	}
}

// ByAddr finds the node that owns an address; a host owns its kernel's and its
// embedded stack's.
func (t *Topology) ByAddr(addr netip.Addr) (NodeID, bool) {
	if !addr.Is4() {
		return 0, false
	}
	a := addr.As4()
	if a[0] != 10 {
		return 0, false
	}
	pod, sw, last := int(a[1]), int(a[2]), int(a[3])
	if pod == t.pods {
		j, i := sw-1, last-1
		if j < 0 || j >= t.aggs || i < 0 || i >= t.cores {
			return 0, false
		}
		return t.id(position{layer: LayerCore, pod: j, sw: i}), true
	}
	if pod > t.pods || sw >= t.edges+t.aggs {
		return 0, false
	}
	if last == 1 {
		if sw < t.edges {
			return t.id(position{layer: LayerEdge, pod: pod, sw: sw}), true
		}
		return t.id(position{layer: LayerAgg, pod: pod, sw: sw - t.edges}), true
	}
	if last >= embeddedOffset {
		last -= embeddedOffset
	}
	host := last - firstHostID
	if sw >= t.edges || host < 0 || host >= t.hosts {
		return 0, false
	}
	return t.id(position{LayerHost, pod, sw, host}), true
}

// EmbeddedAddr returns the address of the embedded stack on a host: the
// host's own with 128 added to the last octet.
func (t *Topology) EmbeddedAddr(host NodeID) netip.Addr {
	a := t.addr(t.position(host)).As4()
	a[3] += embeddedOffset
	return netip.AddrFrom4(a)
}

func (t *Topology) byName(s string) (NodeID, bool) {
	if r, ok := strings.CutPrefix(s, "3."); ok {
		n, err := strconv.Atoi(r)
		if err != nil || n < 0 || n >= t.numCores() || strconv.Itoa(n) != r {
			return 0, false
		}
		return t.core(n), true
	}
	if len(s) < 2 {
		return 0, false
	}
	var d [3]int
	parts := strings.Split(s[1:], ".")
	if len(parts) > len(d) {
		return 0, false
	}
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 || n > 255 || strconv.Itoa(n) != part {
			return 0, false
		}
		d[i] = n
	}
	var addr netip.Addr
	switch {
	case s[0] == 'h' && len(parts) == 3:
		addr = octets(10, d[0], d[1], d[2])
	case (s[0] == 'e' || s[0] == 'a') && len(parts) == 2:
		addr = octets(10, d[0], d[1], 1)
	case s[0] == 'c' && len(parts) == 2:
		addr = octets(10, t.pods, d[0], d[1])
	default:
		return 0, false
	}
	id, ok := t.ByAddr(addr)
	// The name must be the node's own: 10.0.0.130 is h0.0.2's second address,
	// but h0.0.130 is nobody.
	if !ok || t.Node(id).Name != s {
		return 0, false
	}
	return id, true
}
