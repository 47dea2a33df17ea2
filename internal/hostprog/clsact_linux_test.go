package hostprog

import (
	"errors"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// weft of before attached to clsact; what it left is replaced, and its qdisc, which
// may be anybody's, stays.
func TestSpray_replacesClsactByTCX(t *testing.T) {
	u := newUplinkTest(t)
	needTCX(t, u)
	u.do(t, func() error { return netlink.QdiscAdd(kerneltest.Clsact(u.port)) })
	restore := kerneltest.WithoutTCX(t)
	u.cfg.PerPacketTCP = true
	u.attach(t)
	old := u.spray
	old.release()
	restore()
	u.attach(t)
	u.do(t, func() error {
		if f, err := kerneltest.ClsactFilter(u.port, netlink.HANDLE_MIN_EGRESS, "weft-spray"); f != nil || err != nil {
			t.Errorf("clsact still has %v, %v", f, err)
		}
		if c, err := kerneltest.TCX(u.port, ebpf.AttachTCXEgress); err != nil || !slices.Contains(c, u.spray.at.ID) {
			t.Errorf("chain %v, %v", c, err)
		}
		return nil
	})
	if !u.sprays(t) {
		t.Error("not sprayed")
	}
	if err := u.spray.Close(); err != nil {
		t.Fatal(err)
	}
	if n := u.gsoMaxSegs(t); n != u.port.Attrs().GSOMaxSegs {
		t.Errorf("gso_max_segs is %d, was %d before both", n, u.port.Attrs().GSOMaxSegs)
	}
	if !u.hasClsact(t) {
		t.Error("the qdisc that was somebody else's is gone")
	}
}

func (u *uplinkTest) gsoMaxSegs(t *testing.T) (n uint32) {
	t.Helper()
	u.do(t, func() error {
		l, err := netlink.LinkByName("p0")
		if err == nil {
			n = l.Attrs().GSOMaxSegs
		}
		return err
	})
	return n
}

func (u *uplinkTest) hasClsact(t *testing.T) (has bool) {
	t.Helper()
	u.do(t, func() error {
		all, err := netlink.QdiscList(u.port)
		has = slices.ContainsFunc(all, func(q netlink.Qdisc) bool { return q.Type() == "clsact" })
		return err
	})
	return has
}

// The qdisc goes with the last of weft's programs, whoever is last, if weft made it and
// nobody else uses it. With TCX there is none.
func TestClsact_goesWithWeft(t *testing.T) {
	u := newUplinkTest(t)
	pair := func() (*Spray, *Steer) {
		var steer *Steer
		u.attach(t)
		u.do(t, func() (err error) {
			steer, err = AttachSteer(SteerConfig{Uplink: "p0", Rules: steered})
			return err
		})
		return u.spray, steer
	}
	if hasTCX(u) == nil {
		o, s := pair()
		if u.hasClsact(t) {
			t.Error("a qdisc was made that TCX does not need")
		}
		if err := errors.Join(o.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	}
	kerneltest.WithoutTCX(t)
	for range 2 { // the record goes from one to the other
		o, s := pair()
		if err := o.Close(); err != nil || !u.hasClsact(t) {
			t.Fatalf("the qdisc went before Steer: %v", err)
		}
		if err := s.Close(); err != nil || u.hasClsact(t) {
			t.Fatalf("the qdisc has stayed: %v", err)
		}
		o, s = pair()
		if err := s.Close(); err != nil || !u.hasClsact(t) {
			t.Fatalf("the qdisc went before Spray: %v", err)
		}
		if err := o.Close(); err != nil || u.hasClsact(t) {
			t.Fatalf("the qdisc has stayed: %v", err)
		}
	}
	// After a crash, too.
	o, s := pair()
	o.release()
	s.release()
	kerneltest.ForgetPrograms()
	u.do(t, func() error {
		_, err1 := DetachSpray("p0")
		_, err2 := DetachSteer("p0")
		return errors.Join(err1, err2)
	})
	if u.hasClsact(t) {
		t.Error("the qdisc has stayed after a crash")
	}
	// Not where others have a filter, or have made it.
	o, s = pair()
	pass := kerneltest.ForeignProgram(t, "others", kerneltest.TCXNext)
	others := &netlink.BpfFilter{FilterAttrs: netlink.FilterAttrs{LinkIndex: u.port.Attrs().Index, Parent: netlink.HANDLE_MIN_INGRESS,
		Handle: 1, Protocol: unix.ETH_P_ALL, Priority: 7}, Fd: pass.FD(), Name: "others", DirectAction: true}
	u.do(t, func() error { return netlink.FilterAdd(others) })
	if err := errors.Join(o.Close(), s.Close()); err != nil || !u.hasClsact(t) {
		t.Errorf("a qdisc with others' filter is gone: %v", err)
	}
	u.do(t, func() error { return netlink.FilterDel(others) })
	o, s = pair()
	if err := errors.Join(o.Close(), s.Close()); err != nil || !u.hasClsact(t) {
		t.Errorf("another's qdisc is gone: %v", err)
	}
}

// hasTCX fails on kernels without TCX.
func hasTCX(u *uplinkTest) error {
	return kernel.InNamespace(u.near, func() error {
		_, err := kerneltest.TCX(u.port, ebpf.AttachTCXEgress)
		return err
	})
}

// The record that weft kept before is read, too.
func TestDetachSpray_recordOfBefore(t *testing.T) {
	u := newUplinkTest(t)
	was := u.gsoMaxSegs(t)
	leave := func() error {
		prog := kerneltest.ForeignProgram(t, "weft_spray", kerneltest.TCXNext)
		m, err := ebpf.NewMap(&ebpf.MapSpec{Name: "weft_knobs", Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
		if err != nil {
			return err
		}
		defer m.Close()
		filter := &netlink.BpfFilter{FilterAttrs: netlink.FilterAttrs{LinkIndex: u.port.Attrs().Index, Parent: netlink.HANDLE_MIN_EGRESS,
			Handle: 1, Protocol: unix.ETH_P_ALL, Priority: 0x5746}, Fd: prog.FD(), Name: "weft-spray", DirectAction: true}
		if err := netlink.QdiscAdd(kerneltest.Clsact(u.port)); err != nil && !errors.Is(err, unix.EEXIST) {
			return err
		}
		return errors.Join(m.Put(uint32(0), was), prog.BindMap(m), netlink.FilterReplace(filter), netlink.LinkSetGSOMaxSegs(u.port, 1))
	}
	u.do(t, func() error {
		if err := leave(); err != nil {
			return err
		}
		removed, err := DetachSpray("p0")
		if removed == 0 {
			t.Error("nothing removed")
		}
		return err
	})
	if n := u.gsoMaxSegs(t); n != was {
		t.Errorf("gso_max_segs is %d, was %d", n, was)
	}
	u.do(t, leave)
	u.cfg.PerPacketTCP = true
	u.attach(t)
	if err := u.spray.Close(); err != nil {
		t.Error(err)
	}
	if n := u.gsoMaxSegs(t); n != was {
		t.Errorf("gso_max_segs is %d after both, was %d", n, was)
	}
}
