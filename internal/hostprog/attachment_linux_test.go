package hostprog

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// Two who both want to be first do not move each other for ever.
func TestSpray_givesInToWhoInsists(t *testing.T) {
	u := newUplinkTest(t)
	needTCX(t, u)
	u.attach(t)
	end := kerneltest.ForeignProgram(t, "insists", kerneltest.TCXEnd)
	defer kernel.InNamespace(u.near, func() error { return kerneltest.DetachForeign(u.port, ebpf.AttachTCXEgress, end) })
	const moves = 20 // within a minute
	for i := range moves + 3 {
		u.do(t, func() error {
			kerneltest.DetachForeign(u.port, ebpf.AttachTCXEgress, end)
			kerneltest.AttachForeign(t, u.port, ebpf.AttachTCXEgress, end, link.Head())
			return nil
		})
		mended, err := u.spray.Repair()
		if i < moves {
			if err != nil || len(mended) != 1 {
				t.Fatalf("time %d: %q, %v", i, mended, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), "insists") || mended != nil {
			t.Fatalf("time %d: %q, %v; want an error that names who insists", i, mended, err)
		}
	}
	// The settings are mended all the same.
	u.do(t, func() error { return netlink.LinkSetGSOIPv4MaxSize(u.port, 100000) })
	if mended, err := u.spray.Repair(); err == nil || len(mended) != 1 {
		t.Errorf("mended %q, %v; want gso_ipv4_max_size and an error", mended, err)
	}
	o := u.spray
	u.do(t, func() error {
		if mended, err := o.at.MendWith(o.settings, o.handle, time.Now().Add(time.Minute)); err != nil || len(mended) != 1 {
			t.Errorf("mended %q, %v; not again after a minute", mended, err)
		}
		return nil
	})
}

// A device that was renamed is the same; one that is gone is reported as such, and
// Close has nothing to complain of.
func TestSpray_uplinkRenamedAndGone(t *testing.T) {
	inBothChains(t, func(t *testing.T, u *uplinkTest) {
		u.cfg.PerPacketTCP = true
		u.attach(t)
		var steer *Steer
		u.do(t, func() (err error) {
			if steer, err = AttachSteer(SteerConfig{Uplink: "p0", Rules: steered}); err != nil {
				return err
			}
			return errors.Join(netlink.LinkSetDown(u.port), netlink.LinkSetName(u.port, "other0"), netlink.LinkSetUp(u.port))
		})
		u.repair(t)
		for _, w := range []*kerneltest.Wire{u.out, u.in} { // that the device was down
			unix.GetsockoptInt(w.FD, unix.SOL_SOCKET, unix.SO_ERROR)
		}
		if !u.sprays(t) {
			t.Error("not sprayed by the renamed device")
		}
		u.do(t, func() error { return netlink.LinkSetGSOMaxSegs(u.port, 100) })
		u.repair(t, "set gso_max_segs of other0 to 1 again, which was 100")

		u.do(t, func() error { return netlink.LinkDel(u.port) })
		if mended, err := u.spray.Repair(); !errors.Is(err, ErrUplinkGone) || mended != nil {
			t.Errorf("%q, %v; want ErrUplinkGone", mended, err)
		}
		if mended, err := steer.Repair(); !errors.Is(err, ErrUplinkGone) || mended != nil {
			t.Errorf("%q, %v; want ErrUplinkGone", mended, err)
		}
		if err := errors.Join(u.spray.Close(), steer.Close()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

// inBothChains runs a test by TCX, where there is that, and by clsact.
func inBothChains(t *testing.T, f func(t *testing.T, u *uplinkTest)) {
	t.Run("TCX", func(t *testing.T) {
		u := newUplinkTest(t)
		needTCX(t, u)
		f(t, u)
	})
	t.Run("clsact", func(t *testing.T) {
		kerneltest.WithoutTCX(t)
		f(t, newUplinkTest(t))
	})
}

// One that was replaced does not fight its successor.
func TestSpray_repairOfOneReplaced(t *testing.T) {
	inBothChains(t, func(t *testing.T, u *uplinkTest) {
		u.attach(t)
		first := u.spray
		u.attach(t)
		if mended, err := first.Repair(); !errors.Is(err, ErrReplaced) || mended != nil {
			t.Errorf("%q, %v; want ErrReplaced", mended, err)
		}
		u.repair(t)
	})
}

// What Repair costs when there is nothing to mend; cpu-ns/op whatever else the machine
// does.
func BenchmarkSpray_Repair(b *testing.B) {
	top := kerneltest.Topology(b, "fat-tree:k=4")
	cfg := SprayConfig{Uplink: "p0", Addresses: []netip.Addr{top.Node(0).Addr}, Topology: top, Policy: mustPolicy(b, "drb"), PerPacketTCP: true}
	run := func(b *testing.B) {
		ns := kerneltest.Namespace(b, "repair")
		kerneltest.EthernetPair(b, ns, "p0", "p1")
		err := kernel.InNamespace(ns, func() error {
			o, err := AttachSpray(cfg)
			if err != nil {
				return err
			}
			defer o.Close()
			b.ReportAllocs()
			var from, to unix.Rusage // of this thread, which InNamespace has locked
			unix.Getrusage(unix.RUSAGE_THREAD, &from)
			for b.Loop() {
				if mended, err := o.Repair(); err != nil || mended != nil {
					return errors.Join(err, errors.New("mended something"))
				}
			}
			unix.Getrusage(unix.RUSAGE_THREAD, &to)
			spent := to.Utime.Nano() + to.Stime.Nano() - from.Utime.Nano() - from.Stime.Nano()
			b.ReportMetric(float64(spent)/float64(b.N), "cpu-ns/op")
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.Run("TCX", run)
	kerneltest.WithoutTCX(b)
	b.Run("clsact", run)
}
