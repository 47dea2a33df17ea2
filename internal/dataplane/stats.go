package dataplane

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"weft/flowcell"
	"weft/resequencer"
)

// EgressStats counts packets on their way out.
type EgressStats struct {
	Packets        uint64 `json:"packets"`         // taken by the device; a super-segment is one
	Supers         uint64 `json:"supers"`          // of these, super-segments
	Encapsulated   uint64 `json:"encapsulated"`    // for a bouncing switch; the device may have dropped some
	Direct         uint64 `json:"direct"`          // sent without an outer header: same rack, or not a host of the fabric
	Plain          uint64 `json:"plain"`           // sent without an outer header: no proof that the carrier works
	NoPath         uint64 `json:"no_path"`         // dropped: no path to the destination is live
	TooLong        uint64 `json:"too_long"`        // dropped: longer than the MTU, or than any path in use to the rack carries
	Malformed      uint64 `json:"malformed"`       // dropped: not an IP packet that can be classified
	Narrowed       uint64 `json:"narrowed"`        // TCP packets cut, since a switch has reported a smaller MTU on the way
	DeviceDrops    uint64 `json:"device_drops"`    // dropped by the device
	PairsEvicted   uint64 `json:"pairs_evicted"`   // destinations forgotten because there were too many
	RacksEvicted   uint64 `json:"racks_evicted"`   // of local and drill: racks whose best paths were forgotten because there were too many
	NarrowsEvicted uint64 `json:"narrows_evicted"` // destinations whose smaller MTU was forgotten because there were too many
	FlowsEvicted   uint64 `json:"flows_evicted"`   // flows that were cut into units, forgotten because there were too many
	GroupsReset    uint64 `json:"groups_reset"`    // times that all sets of live paths were forgotten because there were too many
}

// IngressStats counts packets on their way in.
type IngressStats struct {
	Packets       uint64 `json:"packets"`        // read from the device; a super-segment is one
	Supers        uint64 `json:"supers"`         // of these, super-segments
	Delivered     uint64 `json:"delivered"`      // handed to TCP, UDP and ICMP
	Merged        uint64 `json:"merged"`         // TCP segments merged into a delivered one before them
	Malformed     uint64 `json:"malformed"`      // dropped: truncated, a bad header length, not IP
	BadChecksum   uint64 `json:"bad_checksum"`   // dropped: IPv4 or TCP checksum wrong
	NotForUs      uint64 `json:"not_for_us"`     // dropped: addressed to another host
	Martian       uint64 `json:"martian"`        // dropped: from an address that nobody can have
	Probes        uint64 `json:"probes"`         // of paths, with Config.Liveness
	Samples       uint64 `json:"samples"`        // probes of congestion, and answers to this host's own
	Marked        uint64 `json:"marked"`         // of Delivered and Merged, TCP with a CONGA mark, which was taken off
	UnprovenMarks uint64 `json:"unproven_marks"` // of Marked, those that did not count: no proof that their senders see what is sent to them
	Encapsulated  uint64 `json:"encapsulated"`   // dropped: IP-in-IP that no bouncing switch has decapsulated
	Relayed       uint64 `json:"relayed"`        // of Delivered, ICMP errors about outer headers, translated to inner packets
	BlindErrors   uint64 `json:"blind_errors"`   // dropped: ICMP errors about TCP that quote no segment in flight
	PathErrors    uint64 `json:"path_errors"`    // dropped: errors of switches that do not concern a sender, quote too little, or report an MTU that no path has
}

// PathStats counts the packets given to the device for one bouncing switch, or to a
// Tunnel's Underlay for one source port. Bytes are those of IP packets with their outer
// headers, or of datagrams.
type PathStats struct {
	Bounce  netip.Addr `json:"bounce"` // not valid in a Tunnel
	Path    int        `json:"path"`   // of the Underlay; 0 without one
	Packets uint64     `json:"packets"`
	Bytes   uint64     `json:"bytes"`
}

// FlowOrder returns what became of the segments of an incoming flow; ok is false if it is not
// remembered.
func (in *Ingress[P]) FlowOrder(flow flowcell.FiveTuple) (s resequencer.FlowStats, ok bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.reseq.FlowStats(&flow)
}

// Stats returns the counters.
func (e *Egress) Stats() (EgressStats, []PathStats) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.stats
	s.FlowsEvicted, s.NarrowsEvicted = e.flows.Evicted(), e.narrows.evicted
	sum := make(map[pathKey]*PathStats)
	for k, p := range e.past {
		sum[k] = &PathStats{p.Bounce, p.Path, p.Packets, p.Bytes}
	}
	for _, l := range e.lanes {
		for _, t := range l.paths.tables() {
			s.PairsEvicted += t.evicted
			s.GroupsReset += t.groups.resets
			t.groups.addTo(sum)
		}
		if b, ok := l.aware.(*backlogged); ok {
			s.RacksEvicted += b.table.Evicted()
		}
	}
	var paths []PathStats
	for _, k := range slices.SortedFunc(maps.Keys(sum), pathKey.compare) {
		paths = append(paths, *sum[k])
	}
	return s, paths
}

// pathKey is what packets are counted by.
type pathKey struct {
	bounce netip.Addr
	path   int // only without a bounce
}

func (k pathKey) compare(l pathKey) int {
	return cmp.Or(k.bounce.Compare(l.bounce), cmp.Compare(k.path, l.path))
}

// addTo adds the counts of all paths to sum.
func (t *groupTable) addTo(sum map[pathKey]*PathStats) {
	for k, o := range t.outs {
		p := sum[k.pathKey]
		if p == nil {
			p = &PathStats{Bounce: k.bounce, Path: k.path}
			sum[k.pathKey] = p
		}
		p.Packets += o.packets
		p.Bytes += o.bytes
	}
}
