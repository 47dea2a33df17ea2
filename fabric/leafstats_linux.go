package fabric

import (
	"errors"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"weft/internal/balance"
	"weft/internal/kernel"
)

// leafStats adds to s what conga and luopan count and know.
func (b *Balance) leafStats(s BalanceStats) (BalanceStats, error) {
	s.Leaf = &LeafStats{}
	if err := b.in.Counters(append(s.sums(), s.Leaf.sums()...)...); err != nil {
		return s, err
	}
	tables, err := b.leafTables()
	if err != nil {
		return s, err
	}
	now, err := kernel.Monotonic()
	if err != nil {
		return s, err
	}
	for number, edge := range tables.edges {
		r := tables.racks[uint32(number)]
		if r == nil {
			continue
		}
		know := LeafRack{Rack: b.leaf.Topology.Node(edge).Name}
		if b.rule.Kind == balance.CONGA {
			err = errors.Join(err, know.readTags(b.in.Maps, r, now))
		} else {
			err = errors.Join(err, know.readSamples(b.in.Maps[leafMapSampled], r, now))
		}
		if know.Tags != nil || know.RTT != 0 || know.Silent != 0 {
			s.Leaf.Racks = append(s.Leaf.Racks, know)
		}
	}
	return s, err
}

// readTags reads what is known of tags that were ever reported. A report counts for twice
// its age at most.
func (k *LeafRack) readTags(maps map[string]*ebpf.Map, r *balance.LeafRack, now uint64) error {
	var row balance.LeafTo
	if err := maps[leafMapTo].Lookup(r.Number, &row); err != nil {
		return err
	}
	for tag := range row.At {
		if row.At[tag] == 0 || r.Start[tag] == r.Start[tag+1] {
			continue
		}
		var d balance.DRE
		if err := maps[leafMapLocal].Lookup(uint32(r.Uplink[tag]), &d); err != nil {
			return err
		}
		t := LeafTag{Tag: tag, Local: d.Metric(now), Remote: row.Metric[tag]}
		k.Tags = append(k.Tags, t)
	}
	return nil
}

func (k *LeafRack) readSamples(m *ebpf.Map, r *balance.LeafRack, now uint64) error {
	var s balance.LeafSamples
	if err := m.Lookup(r.Number, &s); err != nil {
		return err
	}
	k.RTT, k.Silent = time.Duration(s.RTT), int(s.Silent)
	if best := int(s.Best); now < s.Until {
		k.Best = &best
	}
	return nil
}

// readLeaf reads the counters of conga's and luopan's program at ports; false if another one
// is there.
func readLeaf(h *netlink.Handle, ports []netlink.Link, s *BalanceStats) (bool, error) {
	for _, port := range ports {
		id, err := kernel.BalanceFilter.Program(h, port)
		if err != nil || id == 0 {
			continue
		}
		counters, err := kernel.MapOf(id, kernel.CountersMap)
		if err != nil {
			return false, err
		}
		defer counters.Close()
		leaf := &LeafStats{}
		if int(counters.MaxEntries()) != len(s.sums())+len(leaf.sums()) {
			return false, nil
		}
		s.Leaf = leaf
		racks, err := kernel.MapOf(id, leafMapRacks)
		if err != nil {
			return true, err
		}
		defer racks.Close()
		var number uint32
		var r balance.LeafRack
		for it := racks.Iterate(); it.Next(&number, &r); {
			if r.N > 1 {
				s.Destinations++
			}
		}
		return true, kernel.SumCounters(counters, append(s.sums(), leaf.sums()...)...)
	}
	return false, nil
}
