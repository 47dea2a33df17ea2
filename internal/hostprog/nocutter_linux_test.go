package hostprog

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"weft/internal/kernel/kerneltest"
)

// The device takes no place in the uplink's filter of addresses, for want of which veth would
// be promiscuous.
func TestCutter_notPromiscuous(t *testing.T) {
	kerneltest.NeedMacvlan(t)
	u := newUplinkTest(t)
	u.late(t)
	u.do(t, func() error {
		link, err := netlink.LinkByName("p0")
		if err == nil && link.Attrs().Promisc != 0 {
			t.Errorf("promiscuity %d", link.Attrs().Promisc)
		}
		return err
	})
}

// late attaches a program that is to cut late.
func (u *uplinkTest) late(t *testing.T) {
	t.Helper()
	u.cfg.PerPacketTCP, u.cfg.CutLate = true, true
	u.attach(t)
}

// bridge makes the uplink a port of a bridge, or frees it again.
func (u *uplinkTest) bridge(t *testing.T, in bool) {
	t.Helper()
	u.do(t, func() error {
		if !in {
			return netlink.LinkSetNoMaster(u.port)
		}
		attrs := netlink.NewLinkAttrs()
		attrs.Name = "br0"
		bridge := &netlink.Bridge{LinkAttrs: attrs}
		if err := netlink.LinkAdd(bridge); err != nil {
			t.Skipf("a bridge: %v", err)
		}
		return netlink.LinkSetMaster(u.port, bridge)
	})
}

// removed removes the device that cuts, behind the program's back.
func (u *uplinkTest) removed(t *testing.T) {
	t.Helper()
	u.do(t, func() error {
		link, err := netlink.LinkByName(cutterName(u.port))
		if err != nil {
			return err
		}
		return netlink.LinkDel(link)
	})
}

// want wants the uplink's gso_max_segs, and a device that cuts or none.
func (u *uplinkTest) want(t *testing.T, what string, segments uint32, cutter bool) {
	t.Helper()
	u.do(t, func() error {
		link, err := netlink.LinkByName("p0")
		if err == nil && link.Attrs().GSOMaxSegs != segments {
			t.Errorf("%s: gso_max_segs is %d, want %d", what, link.Attrs().GSOMaxSegs, segments)
		}
		if _, err := netlink.LinkByName(cutterName(u.port)); (err == nil) != cutter {
			t.Errorf("%s: device that cuts: %v, want one: %t", what, err, cutter)
		}
		return err
	})
}

// Where the device cannot be had, as at the port of a bridge, TCP itself sends packets. Once it
// can be had, it cuts.
func TestCutter_refused(t *testing.T) {
	kerneltest.NeedMacvlan(t)
	u := newUplinkTest(t)
	before := u.port.Attrs().GSOMaxSegs
	u.bridge(t, true)
	u.late(t)
	if late, why := u.spray.CutsLate(); late || !strings.Contains(why, "weftcut") {
		t.Errorf("cut late %v, %q", late, why)
	}
	u.want(t, "in a bridge", 1, false)
	u.repair(t)
	u.bridge(t, false)
	u.spray.cutter.retry = time.Time{}
	u.repair(t, "made weftcut", "could not be made before")
	u.want(t, "in none", before, true)
	if late, why := u.spray.CutsLate(); !late || why != "" {
		t.Errorf("cut late %v, %q", late, why)
	}
	u.repair(t)
}

// Where the device is lost and cannot be made again, TCP cuts itself until it can be.
func TestCutter_repairFails(t *testing.T) {
	kerneltest.NeedMacvlan(t)
	u := newUplinkTest(t)
	before := u.port.Attrs().GSOMaxSegs
	u.late(t)
	u.removed(t)
	u.bridge(t, true)
	u.repair(t, "gso_max_segs of p0 to 1", "weftcut")
	u.want(t, "lost", 1, false)
	var index uint32
	if err := u.spray.cutterAt.Get(&index); err != nil || index != 0 {
		t.Errorf("the program hands over to device %d, %v", index, err)
	}
	if late, why := u.spray.CutsLate(); late || why == "" {
		t.Errorf("cut late %v, %q", late, why)
	}
	u.spray.cutter.retry = time.Time{}
	u.repair(t) // the same once more, which is no news
	u.bridge(t, false)
	u.repair(t) // not yet
	u.spray.cutter.retry = time.Time{}
	u.repair(t, "made weftcut")
	u.want(t, "made again", before, true)
	u.repair(t)
}

// Others have removed the program: Close removes the device and restores the setting.
func TestCutter_closedWithoutItsProgram(t *testing.T) {
	kerneltest.NeedMacvlan(t)
	inBothChains(t, func(t *testing.T, u *uplinkTest) {
		before := u.port.Attrs().GSOMaxSegs
		for _, late := range []bool{true, false} {
			u.cfg.PerPacketTCP, u.cfg.CutLate = true, late
			u.attach(t)
			u.do(t, func() error { return sprayKind.place.Detach(u.spray.handle, u.port) })
			if err := u.spray.Close(); err != nil {
				t.Error(err)
			}
			u.want(t, fmt.Sprintf("late %t", late), before, false)
		}
	})
}

// What cannot be removed at the uplink keeps no program from being attached.
func TestCutter_leftByOthers(t *testing.T) {
	u := newUplinkTest(t)
	name := cutterName(u.port)
	rename := func(from, to string) {
		u.do(t, func() error {
			link, err := netlink.LinkByName(from)
			if err != nil {
				return err
			}
			return errors.Join(netlink.LinkSetDown(link), netlink.LinkSetName(link, to))
		})
	}
	for _, late := range []bool{false, true} {
		rename("lo", name) // which nobody can remove
		u.cfg.PerPacketTCP, u.cfg.CutLate = true, late
		u.attach(t)
		if is, why := u.spray.CutsLate(); is || (why != "") != late {
			t.Errorf("cut late %v, %q", is, why)
		}
		if !u.sprays(t) {
			t.Error("not sprayed")
		}
		rename(name, "lo")
		if err := u.spray.Close(); err != nil {
			t.Error(err)
		}
	}
}
