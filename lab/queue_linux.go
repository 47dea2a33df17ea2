package lab

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
	"weft/topology"
)

// limitPort gives a port its rate and its queue: a token bucket (tbf) with pfifo_fast in
// it, which has a queue per class of service. So the switches' messages to each other (DSCP
// CS6, "low delay" to Linux) never wait behind data, however full the queue is. Otherwise
// congestion would look like a dead neighbour to a switch that judges by missing messages.
// This holds for forwarded packets, too, because Linux derives their priority from the TOS.
//
// pfifo_fast counts packets, while tbf alone counts bytes. Its bound for each class is the
// device's txqueuelen at the moment when the queue is made.
func (b *builder) limitPort(h *netlink.Handle, port topology.Port, link netlink.Link) error {
	mbit := b.cfg.linkRate(port.Link)
	rate := uint64(mbit * 1e6 / 8)
	limit := b.cfg.queueBytes(mbit)
	if err := h.LinkSetTxQLen(link, max(1, limit/(b.cfg.MTU+kernel.EthernetHeader))); err != nil {
		return fmt.Errorf("queue length: %w", err)
	}
	bucket := netlink.MakeHandle(1, 0)
	err := h.QdiscReplace(&netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: bucket, Parent: netlink.HANDLE_ROOT},
		Rate:       rate,
		Limit:      uint32(limit),
		Buffer:     netlink.Xmittime(rate, uint32(b.cfg.BurstBytes)),
	})
	if err != nil {
		return fmt.Errorf("rate (kernel option NET_SCH_TBF): %w", err)
	}
	err = h.QdiscReplace(&netlink.GenericQdisc{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Parent: bucket | 1},
		QdiscType:  "pfifo_fast",
	})
	if errors.Is(err, unix.ENOENT) {
		b.note("this kernel has no pfifo_fast queue: the switches' messages wait behind data, and at full queues are lost")
		return nil
	}
	if err != nil {
		return fmt.Errorf("queue by class of service: %w", err)
	}
	return nil
}
