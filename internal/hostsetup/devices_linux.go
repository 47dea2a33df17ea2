package hostsetup

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
)

// syncDevices gives the TUN and the uplink what the plan has for them: addresses,
// the TUN's MTU, and that it is up.
func (s *Setup) syncDevices() (changed []string, err error) {
	if s.plan.TUN != "" {
		if changed, err = s.syncTUN(); err != nil {
			return changed, err
		}
	}
	did, err := s.linkLocal(s.plan)
	if did != "" {
		changed = append(changed, did)
	}
	return changed, err
}

func (s *Setup) syncTUN() (changed []string, err error) {
	links, err := kernel.Links(s.h, []string{s.plan.TUN})
	if err != nil {
		return nil, err
	}
	tun := links[0]
	if mtu := tun.Attrs().MTU; s.plan.TUNMTU != 0 && mtu != s.plan.TUNMTU {
		if err := s.h.LinkSetMTU(tun, s.plan.TUNMTU); err != nil {
			return changed, kernel.Explain(fmt.Errorf("MTU %d of %s: %w", s.plan.TUNMTU, s.plan.TUN, err))
		}
		changed = append(changed, fmt.Sprintf("the MTU of %s was %d: set to %d", s.plan.TUN, mtu, s.plan.TUNMTU))
	}
	if tun.Attrs().Flags&net.FlagUp == 0 {
		if err := s.h.LinkSetUp(tun); err != nil {
			return changed, kernel.Explain(fmt.Errorf("set %s up: %w", s.plan.TUN, err))
		}
		changed = append(changed, s.plan.TUN+" was down: set up")
	}
	want := s.plan.Own
	if s.plan.Address.IsValid() {
		want = append(want[:len(want):len(want)], s.plan.Address)
	}
	did, err := s.addAddresses(tun, want)
	return append(changed, did...), err
}

// addAddresses gives a device those of the addresses that it lacks.
func (s *Setup) addAddresses(device netlink.Link, want []netip.Prefix) (changed []string, err error) {
	if len(want) == 0 {
		return nil, nil
	}
	list, err := kernel.Dumped(func() ([]netlink.Addr, error) { return s.h.AddrList(device, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, kernel.Explain(fmt.Errorf("addresses of %s: %w", device.Attrs().Name, err))
	}
	have := make(map[string]bool, len(list))
	for _, a := range list {
		have[a.IPNet.String()] = true
	}
	for _, a := range want {
		if have[kernel.IPNet(a).String()] {
			continue
		}
		// Nobody else can have an address on a TUN: it need not be probed for.
		err := s.h.AddrAdd(device, &netlink.Addr{IPNet: kernel.IPNet(a), Flags: unix.IFA_F_NODAD})
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return changed, kernel.Explain(fmt.Errorf("address %s on %s: %w", a, device.Attrs().Name, err))
		}
		changed = append(changed, fmt.Sprintf("address %s of %s was missing: added", a, device.Attrs().Name))
	}
	return changed, nil
}
