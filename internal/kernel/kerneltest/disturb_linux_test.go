package kerneltest

import (
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
	"weft/internal/kernel/disturb"
)

// A disturbance ends with the test that asked for it, though the device stays. One that stayed
// would lose all but small packets, since the cable by which they were late is gone.
func TestDisturb_endsWithTheTest(t *testing.T) {
	NeedRoot(t)
	ns := Namespace(t, "disturbed")
	EthernetPair(t, ns, "p0", "p1")
	in := func(f func() error) error { return kernel.InNamespace(ns, f) }
	have := func() (programs, devices int) {
		err := in(func() error {
			port, err := netlink.LinkByName("p0")
			if err != nil {
				return err
			}
			ids, err := TCX(port, ebpf.AttachTCXEgress)
			if err != nil {
				return err
			}
			links, err := netlink.LinkList()
			programs, devices = len(ids), len(links)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return programs, devices
	}
	programs, devices := have()
	for _, d := range []disturb.Disturbance{{Loss: 2}, {Skew: time.Millisecond}} {
		t.Run("", func(t *testing.T) {
			Disturb(t, in, "p0", d)
			if now, _ := have(); now != programs+1 {
				t.Errorf("%+v: %d programs at p0, want %d", d, now, programs+1)
			}
		})
		if p, n := have(); p != programs || n != devices {
			t.Errorf("%+v: %d programs at p0 and %d devices after the test, want %d and %d", d, p, n, programs, devices)
		}
	}
}
