package hostprog

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// A program of others that ends the chain does not keep packets from the reader's
// program, whether it is that of the daemon or of TCX at all.
func TestSteer_besideOtherPrograms(t *testing.T) {
	s := newSteerTest(t, steered)
	var port netlink.Link
	end := kerneltest.ForeignProgram(t, "cil_from_netdev", kerneltest.TCXEnd)
	hook := ebpf.AttachTCXIngress
	do := func(f func() error) {
		t.Helper()
		if err := kernel.InNamespace(s.near, f); err != nil {
			t.Fatal(err)
		}
	}
	do(func() (err error) {
		port, err = netlink.LinkByName("p0")
		return err
	})
	s.alive(t, true)
	seen := func() uint64 {
		t.Helper()
		s.out.Send(t, steerPackets()[0].bytes)
		s.read(t) // the packet sockets come first
		st, err := s.steer.Stats()
		if err != nil {
			t.Fatal(err)
		}
		return st.Seen
	}
	before := seen()
	var noTCX error
	do(func() error { _, noTCX = kerneltest.TCX(port, hook); return nil })
	if errors.Is(noTCX, kerneltest.ErrNoTCX) {
		t.Skip(noTCX)
	}
	do(func() error { kerneltest.AttachForeign(t, port, hook, end, link.Head()); return nil })
	defer do(func() error { return kerneltest.DetachForeign(port, hook, end) })
	if n := seen(); n != before {
		t.Errorf("%d packets seen behind a program that ends the chain, %d before", n, before)
	}
	all, err := s.steer.Foreign()
	if err != nil || len(all) != 1 || all[0].String() != fmt.Sprintf("TCX program %d (cil_from_netdev), in front of weft's at ingress", all[0].ID) {
		t.Errorf("foreign %v, %v", all, err)
	}
	for _, want := range []int{1, 0} {
		if mended, err := s.steer.Repair(); err != nil || len(mended) != want {
			t.Errorf("mended %q, %v; want %d", mended, err, want)
		}
	}
	if n := seen(); n <= before {
		t.Error("nothing seen after Repair")
	}
	do(func() error { return kerneltest.DetachForeign(port, hook, s.steer.at.Prog) })
	if mended, err := s.steer.Repair(); err != nil || len(mended) != 1 || mended[0] != "attached weft-steer at ingress of p0 again, where it was missing" {
		t.Errorf("mended %q, %v", mended, err)
	}
	// Super-segments without a length.
	do(func() error {
		if err := netlink.LinkSetGROIPv4MaxSize(port, 100000); err != nil {
			t.Logf("BIG TCP: %v", err)
			return nil
		}
		if mended, err := s.steer.Repair(); err != nil || len(mended) != 1 {
			t.Errorf("mended %q, %v", mended, err)
		}
		if err := netlink.LinkSetGROMaxSize(port, 100000); err != nil { // IPv6's
			t.Errorf("BIG TCP of IPv6: %v", err)
		}
		if mended, err := s.steer.Repair(); err != nil || len(mended) != 1 {
			t.Errorf("mended %q, %v", mended, err)
		}
		if err := s.steer.Close(); err != nil {
			return err
		}
		now, err := netlink.LinkByName("p0")
		if err == nil && now.Attrs().GROIPv4MaxSize != 100000 {
			t.Errorf("gro_ipv4_max_size is %d, want 100000 as before", now.Attrs().GROIPv4MaxSize)
		}
		if err == nil && now.Attrs().GROMaxSize != 100000 {
			t.Errorf("gro_max_size is %d, want 100000 as before", now.Attrs().GROMaxSize)
		}
		return err
	})
}
