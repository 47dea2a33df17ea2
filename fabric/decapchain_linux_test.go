package fabric

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// A switch's program that weft has left in clsact goes on by TCX, with its counters.
func TestAttachDecap_keepsItsCountersAcrossChains(t *testing.T) {
	ns := kerneltest.Namespace(t, "chains")
	kerneltest.EthernetPair(t, ns, "p0", "p1")
	var port netlink.Link
	do := func(f func() error) {
		t.Helper()
		if err := kernel.InNamespace(ns, f); err != nil {
			t.Fatal(err)
		}
	}
	do(func() (err error) {
		port, err = netlink.LinkByName("p0")
		return err
	})
	err := kernel.InNamespace(ns, func() error {
		_, err := kerneltest.TCX(port, ebpf.AttachTCXIngress)
		return err
	})
	if errors.Is(err, kerneltest.ErrNoTCX) {
		t.Skip(err)
	}
	attach := func() (id ebpf.ProgramID, changed int) {
		t.Helper()
		do(func() error {
			h, err := netlink.NewHandle(kernel.Families...)
			if err != nil {
				return err
			}
			defer h.Close()
			ports := []netlink.Link{port}
			if changed, err = attachDecap(h, ports, map[netip.Addr]uint32{netip.MustParseAddr("10.0.0.2"): 0}); err != nil {
				return err
			}
			id, err = kernel.DecapFilter.Program(h, port)
			return err
		})
		return id, changed
	}
	restore := kerneltest.WithoutTCX(t)
	before, _ := attach()
	restore()
	kerneltest.ForgetPrograms()
	after, changed := attach()
	if after != before || changed != 1 {
		t.Errorf("program %d, then %d; %d changes, want 1", before, after, changed)
	}
	do(func() error {
		if f, err := kerneltest.ClsactFilter(port, netlink.HANDLE_MIN_INGRESS, "weft-decap"); f != nil || err != nil {
			t.Errorf("clsact still has %v, %v", f, err)
		}
		return nil
	})
	if again, changed := attach(); again != before || changed != 0 {
		t.Errorf("program %d, %d changes, want %d and none", again, changed, before)
	}
	// Others in front are gone round.
	end := kerneltest.ForeignProgram(t, "in_front", kerneltest.TCXEnd)
	do(func() error { kerneltest.AttachForeign(t, port, ebpf.AttachTCXIngress, end, link.Head()); return nil })
	if again, changed := attach(); again != before || changed != 1 {
		t.Errorf("behind another: program %d, %d changes, want %d and 1", again, changed, before)
	}
	do(func() error { return kerneltest.DetachForeign(port, ebpf.AttachTCXIngress, end) })
}
