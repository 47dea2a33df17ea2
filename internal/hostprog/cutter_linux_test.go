package hostprog

import (
	"strings"
	"testing"
	"time"

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
	kerneltest.NeedMacvlan(t)
	cfg := s.config(t, "drb")
	cfg.PerPacketTCP, cfg.CutLate = true, true
	s.attach(t, cfg)
	if late, why := s.spray.CutsLate(); !late || why != "" {
		t.Fatalf("cut late %v, %q", late, why)
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
		if o := s.stats(t); o.Encapsulated < 1<<20/1448 || o.Late.HandedOver < 100 {
			t.Errorf("%s: counted %+v", what, o)
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

// A super-segment whose device is gone goes on as it is: nothing is lost before a repair.
func TestCutter_goneLosesNothing(t *testing.T) {
	s := newSprayed(t, sprayLab(t), "drb")
	s.spray.Close()
	s.late(t)
	s.leaveRoom(t)
	s.cubic(t, 1<<20)
	whole := s.stats(t).Late
	if whole.HandedOver < 500 || whole.Returned != whole.HandedOver {
		t.Errorf("counted %+v", whole)
	}
	s.change(t, netlink.LinkDel)
	s.cubic(t, 1<<20)
	if o := s.stats(t); o.Late != whole || o.Encapsulated < 2<<20/1448 {
		t.Errorf("counted %+v, then %+v", whole, o)
	}
}

// What is handed over to a device that is down does not return, and is counted.
func TestCutter_downIsCounted(t *testing.T) {
	s := newSprayed(t, sprayLab(t), "drb")
	s.spray.Close()
	s.late(t)
	s.leaveRoom(t)
	s.change(t, netlink.LinkSetDown)
	done := make(chan struct{})
	go func() { defer close(done); s.cubic(t, 1<<20) }()
	var lost LateStats
	for end := time.Now().Add(kerneltest.Patience); lost.HandedOver == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing was handed over")
		}
		lost = s.stats(t).Late
	}
	if lost.Returned != 0 {
		t.Errorf("counted %+v", lost)
	}
	if mended, err := s.spray.Repair(); err != nil || len(mended) != 1 {
		t.Errorf("mended %q, %v", mended, err)
	}
	<-done
	s.cubic(t, 1<<20) // that one may have ended during the repair, without the device
	if o := s.stats(t).Late; o.Returned < 500 || o.Returned >= o.HandedOver {
		t.Errorf("counted %+v", o)
	}
}
