package hostprog

import (
	"errors"
	"fmt"
	"strconv"

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
// Rejected: a veth pair (each packet passes a backlog and a second program, and the socket
// loses sight of it), netkit (Linux 6.7, and rarely built in), gso_max_segs of the uplink itself
// (TCP, netfilter and routing then run for every packet).
//
// A cutter is guarded by program.mu.
type cutter struct {
	uplink netlink.Link
	to     *ebpf.Variable // where the program reads the device's index
	index  int            // of the device; 0: none
	made   bool           // by this one; false: another process has left it
	why    string         // none was to be had
}

// cutterName is the name of the device over an uplink, at most 13 bytes.
func cutterName(uplink netlink.Link) string {
	return "weftcut" + strconv.FormatInt(int64(uplink.Attrs().Index), 36)
}

// open makes the device, or takes over what another process has left. The program does not
// use it before begin.
func (c *cutter) open(h *netlink.Handle, uplink netlink.Link, to *ebpf.Variable) {
	c.uplink, c.to = uplink, to
	if err := c.make(h); err != nil {
		c.why = err.Error()
		closeCutter(h, uplink)
	}
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
	right, err := c.right(h, name)
	if err == nil && !right {
		err = fmt.Errorf("device %s is not as it was made", name)
	}
	return err
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

// begin has the program use the device, if there is one.
func (c *cutter) begin() error {
	if c.to == nil {
		return nil
	}
	return c.to.Set(uint32(c.index))
}

// mend makes the device again if others have changed or removed it. Meanwhile what the program
// hands over is lost, and sent again by TCP.
func (c *cutter) mend(h *netlink.Handle) (mended []string, err error) {
	if c.index == 0 {
		return nil, nil
	}
	was := c.index
	if right, err := c.right(h, cutterName(c.uplink)); err != nil || right && c.index == was {
		return nil, err
	}
	if err := c.make(h); err != nil {
		c.index = 0
		return nil, errors.Join(err, c.begin())
	}
	return []string{"made " + cutterName(c.uplink) + " again"}, c.begin()
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
// (SprayConfig.CutLate), and if not, why.
func (o *Spray) CutsLate() (late bool, why string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.cutter.index != 0, o.cutter.why
}
