package hostprog

import (
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"weft/internal/kernel/kerneltest"
)

// cutters lists the devices that cut, in the sender's namespace.
func (s *sprayed) cutters(t *testing.T) (all []netlink.Link) {
	t.Helper()
	err := s.lab.Do(s.src.ID, func() error {
		links, err := netlink.LinkList()
		for _, l := range links {
			if strings.HasPrefix(l.Attrs().Name, "weftcut") {
				all = append(all, l)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// late attaches a program that cuts late.
func (s *sprayed) late(t *testing.T) {
	t.Helper()
	cfg := s.config(t, "drb")
	cfg.PerPacketTCP, cfg.CutLate = true, true
	s.attach(t, cfg)
	if late, why := s.spray.CutsLate(); !late {
		t.Skip(why)
	}
}

// change changes the device that cuts, behind the program's back.
func (s *sprayed) change(t *testing.T, f func(netlink.Link) error) {
	t.Helper()
	all := s.cutters(t)
	if len(all) != 1 {
		t.Fatalf("%d devices cut, want one", len(all))
	}
	if err := s.lab.Do(s.src.ID, func() error { return f(all[0]) }); err != nil {
		t.Fatal(err)
	}
}

// What others do to the device is put right, and TCP goes on.
func TestCutter_repair(t *testing.T) {
	s := newSprayed(t, sprayLab(t), "drb")
	s.spray.Close()
	s.late(t)
	for what, f := range map[string]func(netlink.Link) error{
		"deleted": netlink.LinkDel,
		"down":    netlink.LinkSetDown,
		"limit":   func(l netlink.Link) error { return netlink.LinkSetGSOMaxSegs(l, 100) },
	} {
		s.change(t, f)
		mended, err := s.spray.Repair()
		if err != nil || len(mended) != 1 || !strings.Contains(mended[0], "made weftcut") {
			t.Errorf("%s: mended %q, %v", what, mended, err)
		}
		if mended, err := s.spray.Repair(); err != nil || len(mended) != 0 {
			t.Errorf("%s: mended again %q, %v", what, mended, err)
		}
		s.leaveRoom(t)
		s.cubic(t, 1<<20)
		if o := s.stats(t); o.Encapsulated < 1<<20/1448 {
			t.Errorf("%s: %d packets encapsulated", what, o.Encapsulated)
		}
	}
}

// What a crash leaves the next one takes over, and DetachSpray removes it.
func TestCutter_afterACrash(t *testing.T) {
	s := newSprayed(t, sprayLab(t), "drb")
	s.spray.Close()
	s.late(t)
	index := s.cutters(t)[0].Attrs().Index
	s.spray.release()
	kerneltest.ForgetPrograms()
	s.late(t)
	if all := s.cutters(t); len(all) != 1 || all[0].Attrs().Index != index {
		t.Errorf("devices %v, want that of before, %d", all, index)
	}
	s.spray.release()
	kerneltest.ForgetPrograms()
	s.detach(t, true)
	if all := s.cutters(t); len(all) != 0 {
		t.Errorf("%d devices are left", len(all))
	}
	s.detach(t, false)
}

// Closing what was replaced leaves the device of the other one.
func TestCutter_replaced(t *testing.T) {
	s := newSprayed(t, sprayLab(t), "drb")
	s.spray.Close()
	s.late(t)
	first := s.spray
	s.late(t)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(s.cutters(t)); n != 1 {
		t.Errorf("%d devices, want 1", n)
	}
	s.attach(t, s.config(t, "presto"))
	if n := len(s.cutters(t)); n != 0 {
		t.Errorf("%d devices under a policy of flowcells", n)
	}
}

// Where the device cannot be had, as at the port of a bridge, TCP itself sends packets.
func TestCutter_refused(t *testing.T) {
	u := newUplinkTest(t)
	u.do(t, func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = "br0"
		bridge := &netlink.Bridge{LinkAttrs: attrs}
		if err := netlink.LinkAdd(bridge); err != nil {
			t.Skipf("a bridge: %v", err)
		}
		return netlink.LinkSetMaster(u.port, bridge)
	})
	u.cfg.PerPacketTCP, u.cfg.CutLate = true, true
	u.attach(t)
	if late, why := u.spray.CutsLate(); late || !strings.Contains(why, "weftcut") {
		t.Errorf("cut late %v, %q", late, why)
	}
	u.do(t, func() error {
		link, err := netlink.LinkByName("p0")
		if err == nil && link.Attrs().GSOMaxSegs != 1 {
			t.Errorf("gso_max_segs is %d, want 1", link.Attrs().GSOMaxSegs)
		}
		return err
	})
	u.repair(t)
}
