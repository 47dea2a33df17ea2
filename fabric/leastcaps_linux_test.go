package fabric

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// withCapabilities runs f on the calling thread, which must be locked, with no
// other capabilities in effect.
func withCapabilities(f func() error, caps ...int) error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if err := unix.Capget(&hdr, &have[0]); err != nil {
		return err
	}
	few := have
	few[0].Effective, few[1].Effective = 0, 0
	for _, c := range caps {
		few[c/32].Effective |= 1 << (c % 32)
	}
	if err := unix.Capset(&hdr, &few[0]); err != nil {
		return err
	}
	return errors.Join(f(), unix.Capset(&hdr, &have[0]))
}

// A daemon needs no more than these to attach, change and close.
func TestOffloadAndSteer_leastCapabilities(t *testing.T) {
	ns := testNamespace(t, "caps")
	ethernetPair(t, ns, "p0", "p1")
	shell(t, ns, "ip tuntap add tun0 mode tun && ip link set tun0 up")
	top := mustParse(t, "fat-tree:k=4")
	cfg := OffloadConfig{Uplink: "p0", Addresses: []netip.Addr{top.Node(0).Addr}, Topology: top,
		Policy: mustPolicy(t, "drb"), PerPacketTCP: true}
	attachAndClose := func() error {
		o, err := AttachOffload(cfg)
		if err != nil {
			return err
		}
		s, err := AttachSteer(SteerConfig{Uplink: "p0", Rules: steered})
		if err != nil {
			return errors.Join(err, o.Close())
		}
		d, err := AttachDetour(DetourConfig{TUN: "tun0", Uplink: "p0", Gateway: netip.MustParseAddr("10.0.0.1"), Patience: time.Second})
		if err != nil {
			return errors.Join(err, o.Close(), s.Close())
		}
		_, err1 := o.Stats()
		_, err2 := s.Stats()
		_, err3 := o.Repair()
		_, err4 := s.Repair()
		return errors.Join(err1, err2, err3, err4, d.Close(), o.SetTopology(top), s.Beat(), o.Close(), s.Close())
	}
	err := inNamed(ns, func() error {
		return withCapabilities(attachAndClose, unix.CAP_NET_ADMIN, unix.CAP_BPF)
	})
	if err != nil {
		t.Error(err)
	}
	err = inNamed(ns, func() error { return withCapabilities(attachAndClose, unix.CAP_NET_ADMIN) })
	if !errors.Is(err, unix.EPERM) || !errors.As(err, new(refused)) {
		t.Errorf("without CAP_BPF: %v; does not say what is missing", err)
	}
}
