package blame

import (
	"cmp"
	"net/netip"

	"weft/topology"
)

// Kind says what a Place is.
type Kind uint8

// The kinds, those first that are blamed first where nothing tells them apart.
const (
	Link Kind = iota
	Switch
	Host
)

// String returns "link", "switch" or "host".
func (k Kind) String() string { return [...]string{"link", "switch", "host"}[k] }

// Place is where packets may be lost: a link between switches, a switch, or a host with the
// link that leads to it.
type Place struct {
	Kind Kind
	Link topology.LinkID // of a Link
	Node topology.NodeID // of a Switch
	Host netip.Addr      // of a Host
}

func comparePlaces(a, b Place) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Link, b.Link), cmp.Compare(a.Node, b.Node), a.Host.Compare(b.Host))
}

// Name returns what a place is called in t: a0.2-c1.1, c1.1 or h3.1.3.
func (p Place) Name(t *topology.Topology) string {
	switch p.Kind {
	case Link:
		return t.LinkName(p.Link)
	case Switch:
		return t.Node(p.Node).Name
	}
	return t.HostName(p.Host)
}
