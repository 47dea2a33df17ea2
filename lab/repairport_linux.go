package lab

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"weft/fabric"
	"weft/internal/kernel"
	"weft/topology"
)

// configurePort mends what only the lab needs of a port, and says what that was.
func (r *labRepair) configurePort(h *netlink.Handle, n topology.Node, port topology.Port, name string) (did []string, err error) {
	link, err := h.LinkByName(name)
	if err != nil {
		return nil, err
	}
	a := link.Attrs()
	if mtu := r.cfg.linkMTU(r.cfg.plant().Node(r.cfg.plant().Link(port.Link).A)); a.MTU != mtu {
		if err := h.LinkSetMTU(link, mtu); err != nil {
			return did, kernel.Explain(err)
		}
		did = append(did, fmt.Sprintf("put back the MTU %d", mtu))
	}
	known, err := r.knows(h, n.ID, port, a.Index)
	if err != nil {
		return did, err
	}
	if !known && a.Flags&net.FlagUp != 0 { // the kernel keeps none while a port is down
		if err := r.cfg.setNeighbour(h, n.ID, port, a.Index); err != nil {
			return did, err
		}
		did = append(did, "put back the neighbour")
	}
	limited, err := r.limited(h, port, a)
	if err != nil {
		return did, err
	}
	if !limited {
		if err := r.limitPort(h, port, link); err != nil {
			return did, err
		}
		did = append(did, "put back rate and queue")
	}
	// A program of weft's at the host may have lowered it.
	if most := r.cfg.GSOMaxBytes; n.Layer == topology.LayerHost && most != 0 && int(a.GSOIPv4MaxSize) > most {
		if err := h.LinkSetGSOIPv4MaxSize(link, most); err != nil {
			return did, fmt.Errorf("largest super-segment (Linux 6.3): %w", err)
		}
		did = append(did, "put back the largest super-segment")
	}
	return did, nil
}

// knows reports whether the other end of a port's link is known as setNeighbour has it.
func (r *labRepair) knows(h *netlink.Handle, id topology.NodeID, port topology.Port, index int) (bool, error) {
	for _, want := range r.cfg.neighbours(id, port) {
		list, err := kernel.Dumped(func() ([]netlink.Neigh, error) { return h.NeighList(index, familyOf(want)) })
		if err != nil {
			return false, kernel.Explain(fmt.Errorf("neighbours: %w", err))
		}
		if !slices.ContainsFunc(list, func(n netlink.Neigh) bool {
			return n.IP.Equal(want.AsSlice()) && n.State == netlink.NUD_PERMANENT && slices.Equal(n.HardwareAddr, portMAC(port.Peer, port.PeerPort))
		}) {
			return false, nil
		}
	}
	return true, nil
}

// limited reports whether a port has the rate and the queue of limitPort.
func (r *labRepair) limited(h *netlink.Handle, port topology.Port, a *netlink.LinkAttrs) (bool, error) {
	if r.cfg.Unlimited {
		return true, nil
	}
	qdiscs, err := kernel.Dumped(func() ([]netlink.Qdisc, error) { return h.QdiscList(&netlink.GenericLink{LinkAttrs: *a}) })
	if err != nil {
		return false, kernel.Explain(fmt.Errorf("queues: %w", err))
	}
	mbit := r.cfg.linkRate(port.Link)
	rate := uint64(mbit * 1e6 / 8)
	burst := netlink.Xmittime(rate, uint32(r.cfg.BurstBytes))
	classes := slices.ContainsFunc(r.notes, func(n string) bool { return strings.Contains(n, "pfifo_fast") })
	bucket := false
	for _, q := range qdiscs {
		if t, ok := q.(*netlink.Tbf); ok && t.Parent == netlink.HANDLE_ROOT {
			bucket = t.Rate == rate && int(t.Limit) == r.cfg.queueBytes(mbit) && max(t.Buffer, burst)-min(t.Buffer, burst) <= burst/100+1
		}
		classes = classes || q.Type() == "pfifo_fast" && q.Attrs().Parent == netlink.MakeHandle(1, 1)
	}
	return bucket && classes, nil
}

// remeter has those of a switch's ports metered that have lost their meter.
func (r *labRepair) remeter(h *netlink.Handle, n topology.Node, plan fabric.NodePlan, report *fabric.Report) error {
	if r.cfg.Meter == nil {
		return nil
	}
	links, err := kernel.Links(h, portNames(plan))
	if err != nil {
		return err
	}
	var cfg fabric.MeterConfig
	for i, port := range r.cfg.ports(n.ID) {
		id, err := kernel.MeterFilter.Program(h, links[i])
		if err != nil {
			return err
		}
		if id == 0 {
			cfg.Ports = append(cfg.Ports, r.cfg.Meter.port(r.cfg, plan.Ports[i].Name, r.cfg.linkRate(port.Link)))
		}
	}
	if len(cfg.Ports) == 0 {
		return nil
	}
	m, err := fabric.AttachMeter(cfg)
	if err != nil {
		return err
	}
	report.Add(len(cfg.Ports), "put back meters")
	return m.Close()
}
