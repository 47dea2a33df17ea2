package hostsetup

import (
	"net/netip"

	"weft/topology"
)

// Prefixes returns the fewest prefixes that contain the hosts of a topology
// and none of its cores, so that packets to bouncing switches need no rule. Where the fabric
// is data these are its racks' prefixes.
func Prefixes(t *topology.Topology) []netip.Prefix {
	if !t.Computed() {
		return racks(t)
	}
	var pods []netip.Prefix
	for n := range t.Hosts() {
		p, _ := n.Addr.Prefix(16)
		if len(pods) == 0 || pods[len(pods)-1] != p {
			pods = append(pods, p)
		}
	}
	for merged := true; merged; {
		pods, merged = mergePairs(pods)
	}
	return pods
}

// racks returns the IPv4 prefixes of all racks.
func racks(t *topology.Topology) (list []netip.Prefix) {
	for edge := range t.Racks() {
		list = append(list, t.RackPrefixesOf(edge, false)...)
	}
	return list
}

// mergePairs replaces neighbours that are the halves of one prefix by it.
func mergePairs(in []netip.Prefix) (out []netip.Prefix, merged bool) {
	for i := 0; i < len(in); i++ {
		if i+1 < len(in) && in[i].Bits() == in[i+1].Bits() {
			a, _ := in[i].Addr().Prefix(in[i].Bits() - 1)
			if b, _ := in[i+1].Addr().Prefix(in[i].Bits() - 1); a == b {
				out, merged = append(out, a), true
				i++
				continue
			}
		}
		out = append(out, in[i])
	}
	return out, merged
}
