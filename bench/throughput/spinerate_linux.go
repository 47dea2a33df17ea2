package throughput

import (
	"fmt"
	"slices"

	"github.com/vishvananda/netlink"

	"weft/fabric"
	"weft/topology"
)

// A limited port has a tbf with a burst of half a millisecond, at least two packets. On a
// busy machine timers are that late, and the port would otherwise lose some of its rate.
// Super-segments are cut there as at a port of hardware, up to 800 Mbit/s. The queue has
// a hundred packets.
const (
	limitedBurst = 0.5e-3 // seconds
	leastBurst   = 2 * 1600
	limitedQueue = 100 * 1514
)

// limitSpines gives the links between the hosts' leaves and the spines a rate,
// in both directions.
func (b *bench) limitSpines() error {
	if b.options.SpineRate == 0 {
		return nil
	}
	leaves := []topology.NodeID{b.topology.EdgeOf(b.from), b.topology.EdgeOf(b.to)}
	for _, s := range b.spines {
		for _, p := range b.topology.Ports(s.node) {
			if !slices.Contains(leaves, p.Peer) {
				continue
			}
			if err := b.limit(s.node, p.Index); err != nil {
				return err
			}
			if err := b.limit(p.Peer, p.PeerPort); err != nil {
				return err
			}
		}
	}
	return nil
}

// limit gives a port its rate.
func (b *bench) limit(node topology.NodeID, port int) error {
	name := fmt.Sprintf(fabric.DefaultPortFormat, port)
	err := b.lab.Do(node, func() error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		rate := uint64(b.options.SpineRate * 1e6 / 8)
		return netlink.QdiscReplace(&netlink.Tbf{
			QdiscAttrs: netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
			Rate:       rate,
			Limit:      limitedQueue,
			Buffer:     netlink.Xmittime(rate, max(uint32(float64(rate)*limitedBurst), leastBurst)),
		})
	})
	if err != nil {
		return fmt.Errorf("rate of port %s of %s (kernel option NET_SCH_TBF): %w", name, b.topology.Node(node).Name, err)
	}
	return nil
}
