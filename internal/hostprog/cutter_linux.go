package hostprog

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
)

// cutter is a device that cuts super-segments. It lies over an uplink, by which it sends what it
// is given. It takes no super-segments itself (gso_max_segs), so the kernel cuts them on their
// way into it, and the packets pass the uplink's egress one by one.
//
// It is a macvlan of mode source without sources, which gets nothing of what arrives. It has
// no address, asks and answers no ARP, and has no IPv6. Its own MAC address is never used.
// It ends with its uplink.
//
// The uplink's egress takes what the device sends for good, or drops it: TCP does not hear of
// it, as it does of what it cuts itself.
//
// Rejected: a veth pair (each packet passes a backlog and a second program, and the socket
// loses sight of it), netkit (Linux 6.7, and rarely built in), gso_max_segs of the uplink itself
// (TCP, netfilter and routing then run for every packet); a macvlan of mode passthru, which
// needs no MAC address in the uplink's filter but takes all that arrives.
//
// A cutter is guarded by program.mu.
type cutter struct {
	wanted bool // SprayConfig.CutLate or CutForwarded, and one uplink
	tcp    bool // of these CutLate: while there is a device, TCP does not cut itself
	uplink netlink.Link
	to     *ebpf.Variable // where the program reads the device's index
	index  int            // of the device; 0: none, and TCP cuts itself
	made   bool           // by this one; false: another process has left it
	why    string         // none is to be had; "" if one is, or is not wanted
	retry  time.Time      // not before this is it tried again to make one
}

// cutterRetry is the time between two tries to make the device where it could not be made. A
// try may have the kernel look for a module.
const cutterRetry = 10 * time.Second

// cutterName is the name of the device over an uplink, at most 13 bytes.
func cutterName(uplink netlink.Link) string {
	return "weftcut" + strconv.FormatInt(int64(uplink.Attrs().Index), 36)
}

// attachCutting attaches the program, with what cuts super-segments if something is to.
func (o *Spray) attachCutting(cfg SprayConfig, link netlink.Link) error {
	o.cutter.tcp = cfg.CutLate
	switch {
	case !cfg.CutLate && !cfg.CutForwarded:
	case len(cfg.Uplinks) > 0:
		o.cutter.why = "the host has several uplinks"
	default:
		o.cutter.open(o.handle, link, o.cutterAt, time.Now())
	}
	late := o.cutter.index != 0
	cfg.PerPacketTCP = cfg.PerPacketTCP && !(late && cfg.CutLate)
	err := o.cutter.begin()
	if err == nil {
		err = o.attachWith(cfg.settings(link))
	}
	if err != nil {
		if o.cutter.made {
			_, err2 := closeCutter(o.handle, link)
			err = errors.Join(err, err2)
		}
		return err
	}
	o.detached = func() error {
		_, err := closeCutter(o.handle, link)
		return err
	}
	if !late {
		// Of the program that this one replaces. One that cannot be removed now does no harm:
		// Close tries again.
		_, _ = closeCutter(o.handle, link)
	}
	return nil
}

// open makes the device, or takes over what another process has left. The program does not
// use it before begin.
func (c *cutter) open(h *netlink.Handle, uplink netlink.Link, to *ebpf.Variable, now time.Time) {
	c.wanted, c.uplink, c.to = true, uplink, to
	if err := c.make(h); err != nil {
		c.fail(h, err, now)
	}
}

// fail notes that there is no device, and removes what is left of it.
func (c *cutter) fail(h *netlink.Handle, why error, now time.Time) {
	c.index, c.why, c.retry = 0, why.Error(), now.Add(cutterRetry)
	_, _ = closeCutter(h, c.uplink) // if that fails, so does the next try
}

// make has the device be there as it must be.
func (c *cutter) make(h *netlink.Handle) error {
	name := cutterName(c.uplink)
	if right, err := c.right(h, name); right || err != nil {
		return err
	}
	if _, err := closeCutter(h, c.uplink); err != nil {
		return err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.ParentIndex, attrs.GSOMaxSegs = name, c.uplink.Attrs().Index, 1
	device := &netlink.Macvlan{LinkAttrs: attrs, Mode: netlink.MACVLAN_MODE_SOURCE}
	if err := h.LinkAdd(device); err != nil {
		return kernel.Explain(fmt.Errorf("device %s (kernel option MACVLAN; the uplink must not be part of a bridge or bond): %w", name, err))
	}
	c.made = true
	// A kernel without IPv6 knows neither.
	_ = h.LinkSetIP6AddrGenMode(device, nl6AddrGenNone)
	_, _, _ = kernel.SetSysctl(kernel.Sysctl{Key: "net.ipv6.conf." + name + ".disable_ipv6", Value: "1"})
	err := errors.Join(h.LinkSetGSOMaxSegs(device, 1), h.LinkSetARPOff(device), h.LinkSetUp(device))
	if err != nil {
		return kernel.Explain(fmt.Errorf("device %s: %w", name, err))
	}
	c.spareFilter(h, device)
	right, err := c.right(h, name)
	if err == nil && !right {
		err = fmt.Errorf("device %s is not as it was made", name)
	}
	return err
}

// spareFilter takes the device's MAC address, which nobody sends to, out of the uplink's filter
// of addresses. A device that has no such filter (veth) would receive everything there is
// (promiscuous mode) for as long as the address is in there. Not every device lets go of it, so
// this is best effort.
func (c *cutter) spareFilter(h *netlink.Handle, device netlink.Link) {
	if now, err := h.LinkByName(device.Attrs().Name); err == nil {
		_ = h.NeighDel(&netlink.Neigh{LinkIndex: c.uplink.Attrs().Index, Family: unix.AF_BRIDGE, State: netlink.NUD_PERMANENT,
			Flags: netlink.NTF_SELF, HardwareAddr: now.Attrs().HardwareAddr})
	}
}

// nl6AddrGenNone is IN6_ADDR_GEN_MODE_NONE of linux/if_link.h: no link-local address.
const nl6AddrGenNone = 1

// right reports whether the device is there as it must be, and if so notes its index.
func (c *cutter) right(h *netlink.Handle, name string) (bool, error) {
	link, err := h.LinkByName(name)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return false, nil
	}
	if err != nil {
		return false, kernel.Explain(fmt.Errorf("device %s: %w", name, err))
	}
	v, ok := link.(*netlink.Macvlan)
	a := link.Attrs()
	if !ok || v.Mode != netlink.MACVLAN_MODE_SOURCE || a.ParentIndex != c.uplink.Attrs().Index || a.GSOMaxSegs != 1 || a.RawFlags&unix.IFF_UP == 0 {
		return false, nil
	}
	c.index = a.Index
	return true, nil
}

// begin has the program use the device, or none if there is none.
func (c *cutter) begin() error {
	if c.to == nil {
		return nil
	}
	return c.to.Set(uint32(c.index))
}

// mend makes the device again if others have changed or removed it. Until it notices, the
// program hands nothing over to a device that is gone, and a super-segment takes one path; what
// it hands over to one that is down is lost, and sent again by TCP. Where the device cannot be
// made, TCP cuts itself (gso_max_segs of the uplink), and mend tries again after cutterRetry.
func (c *cutter) mend(h *netlink.Handle, s *kernel.Settings, now time.Time) (mended []string, err error) {
	if !c.wanted || c.index == 0 && now.Before(c.retry) {
		return nil, nil
	}
	name, was := cutterName(c.uplink), c.index
	if right, err := c.right(h, name); err != nil || right && c.index == was {
		return nil, err
	}
	c.index = 0
	if err := c.begin(); err != nil {
		return nil, err
	}
	if err := c.make(h); err != nil {
		return c.doWithout(h, s, err, now)
	}
	c.why = ""
	if err := c.begin(); err != nil {
		return nil, err
	}
	mended = []string{"made " + name + " again"}
	if was == 0 {
		mended = []string{"made " + name + ", which could not be made before"}
	}
	if s.Wanted(kernel.GSOSegments) == 0 || !c.tcp {
		return mended, nil
	}
	return mended, s.Want(h, c.uplink, kernel.GSOSegments, 0)
}

// doWithout has TCP cut itself.
func (c *cutter) doWithout(h *netlink.Handle, s *kernel.Settings, why error, now time.Time) (mended []string, err error) {
	c.fail(h, why, now)
	if s.Wanted(kernel.GSOSegments) == 1 || !c.tcp {
		return nil, nil
	}
	if err := s.Want(h, c.uplink, kernel.GSOSegments, 1); err != nil {
		c.retry = now
		return nil, err
	}
	return []string{fmt.Sprintf("set gso_max_segs of %s to 1, so that TCP cuts itself: %v", c.uplink.Attrs().Name, why)}, nil
}

// closeCutter removes the device over an uplink, whoever made it. removed is false if there is
// none.
func closeCutter(h *netlink.Handle, uplink netlink.Link) (removed bool, err error) {
	link, err := h.LinkByName(cutterName(uplink))
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return false, nil
	}
	if err == nil {
		err = h.LinkDel(link)
	}
	if err != nil {
		return false, kernel.Explain(fmt.Errorf("device %s: %w", cutterName(uplink), err))
	}
	return true, nil
}

// detachCutter is closeCutter in the network namespace of the calling thread.
func detachCutter(uplink string) (removed bool, err error) {
	h, err := netlink.NewHandle(kernel.Families...)
	if err != nil {
		return false, kernel.Explain(err)
	}
	defer h.Close()
	links, err := kernel.Links(h, []string{uplink})
	if err != nil {
		return false, err
	}
	return closeCutter(h, links[0])
}

// CutsLate reports whether super-segments are whole as far as the uplink's egress
// (SprayConfig.CutLate), and if they are to be and are not, why.
func (o *Spray) CutsLate() (late bool, why string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.cutter.index != 0 && o.cutter.tcp, o.cutter.why
}

// LateStats counts what SprayConfig.CutLate hands over, in segments. What has not returned is
// lost, or still under way: the device was down.
type LateStats struct {
	HandedOver uint64 `json:"handed_over"` // to the device that cuts
	Returned   uint64 `json:"returned"`    // to the uplink's egress, as packets
}
