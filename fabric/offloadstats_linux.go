package fabric

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/cilium/ebpf"
)

// OffloadStats are the IPv4 packets that left by an uplink, by what became of
// them, since the program was attached. A super-segment counts as its segments
// where it was encapsulated, as one elsewhere.
type OffloadStats struct {
	Encapsulated uint64 `json:"encapsulated"`
	Passed       uint64 `json:"passed"`    // as they were: own rack, not of the fabric, of another source, IP-in-IP already
	Refused      uint64 `json:"refused"`   // as they were, for the kernel does not encapsulate what another tunnel has
	NoPath       uint64 `json:"no_path"`   // dropped: no live path to the rack
	TooLong      uint64 `json:"too_long"`  // dropped: above the uplink's MTU with the outer header; the route's MTU is too large
	Malformed    uint64 `json:"malformed"` // dropped: lengths that contradict each other; more than 64 KB in one (BIG TCP)

	// Of the addresses whose TCP is cut, and of all where paths are drawn. A flow
	// that was forgotten for want of room begins again and counts anew.
	Flows     uint64 `json:"flows"`
	Flowcells uint64 `json:"flowcells"`
	Chosen    uint64 `json:"chosen,omitempty"` // flowcells that took the path that Choose had said; others took any

	Bounces []BounceStats `json:"bounces"` // by address
}

// BounceStats is what was sent to one bouncing switch, or by labels through it.
type BounceStats struct {
	Addr netip.Addr `json:"address"`
	Traffic
	Flowcells uint64 `json:"flowcells,omitempty"` // begun, where paths are drawn
}

// Traffic is an amount of IP packets. Bytes are
// those of the packets as a device sends them, outer headers included, Ethernet's
// left out.
type Traffic struct {
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
}

// bounceValue is struct traffic of bpf/spray.c.
type bounceValue struct {
	Traffic
	Flowcells uint64
}

// Stats returns the counters.
func (o *Offload) Stats() (OffloadStats, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.handle == nil {
		return OffloadStats{}, errOffloadClosed
	}
	return readOffloadStats(o.counts, o.bounces, o.switches)
}

func readOffloadStats(counts, bounces *ebpf.Map, switches map[pathWord]netip.Addr) (OffloadStats, error) {
	var s OffloadStats
	// The order of the enum in bpf/spray.c.
	if err := sumCounters(counts, &s.Encapsulated, &s.Passed, &s.Refused, &s.NoPath, &s.TooLong, &s.Malformed, &s.Flows, &s.Flowcells, &s.Chosen); err != nil {
		return s, err
	}
	var word pathWord
	var perCPU []bounceValue
	all := make(map[netip.Addr]BounceStats)
	it := bounces.Iterate()
	for it.Next(&word, &perCPU) {
		b := all[switches[word]]
		for _, t := range perCPU {
			b.Packets += t.Packets
			b.Bytes += t.Bytes
			b.Flowcells += t.Flowcells
		}
		all[switches[word]] = b
	}
	if err := it.Err(); err != nil {
		return s, fmt.Errorf("counters of the bouncing switches: %w", err)
	}
	for a, b := range all {
		b.Addr = a
		s.Bounces = append(s.Bounces, b)
	}
	slices.SortFunc(s.Bounces, func(a, b BounceStats) int { return a.Addr.Compare(b.Addr) })
	return s, nil
}
