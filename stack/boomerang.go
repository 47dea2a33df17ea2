package stack

import (
	"net/netip"

	"weft/topology"
)

// pathsTo are the paths from a Host to the host with an address; false if that is
// none, or nobody bounces on the way to it.
func pathsTo(t *topology.Topology, self, to netip.Addr) (set topology.PathSet, ok bool) {
	from, _ := t.ByAddr(self)
	id, ok := t.ByAddr(to)
	if !ok || int(id) >= t.NumHosts() {
		return set, false
	}
	set = t.Paths(from, id)
	return set, !set.Direct()
}
