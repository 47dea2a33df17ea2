package hostsetup

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
	"weft/topology"
)

// addedAddress is a link-local address that a set-up has given a device.
type addedAddress struct {
	Device  string     `json:"device"`
	Address netip.Addr `json:"address"`
}

// check refuses what a set-up does not add: the state is a user's file, and root
// reads it.
func (a addedAddress) check() error {
	b := a.Address.As16()
	if a.Address != topology.LinkLocal6(netip.AddrFrom4([4]byte(b[12:]))) {
		return fmt.Errorf("%v is not an address that weft adds", a.Address)
	}
	return checkDevice(a.Device)
}

func (a addedAddress) netlink() *netlink.Addr {
	// The address is made from one that is this host's alone: it need not be
	// probed for.
	return &netlink.Addr{IPNet: kernel.IPNet(netip.PrefixFrom(a.Address, 64)), Scope: unix.RT_SCOPE_LINK, Flags: unix.IFA_F_NODAD}
}

// linkLocal gives the uplink the plan's address, unless it has it, and writes down
// before that it did. It is of no harm to a later plan that has none.
func (s *Setup) linkLocal(p Plan) (changed string, err error) {
	if !p.LinkLocal.IsValid() {
		return "", nil
	}
	a := addedAddress{p.Uplink, p.LinkLocal}
	links, err := kernel.Links(s.h, []string{a.Device})
	if err != nil {
		return "", err
	}
	have, err := kernel.Dumped(func() ([]netlink.Addr, error) { return s.h.AddrList(links[0], netlink.FAMILY_V6) })
	if err != nil {
		return "", kernel.Explain(fmt.Errorf("addresses of %s: %w", a.Device, err))
	}
	for _, h := range have {
		if h.IP.Equal(a.Address.AsSlice()) {
			return "", nil
		}
	}
	s.state.LinkLocal = &a
	if err := s.file().write(s.state); err != nil {
		return "", err
	}
	err = s.h.AddrReplace(links[0], a.netlink())
	switch {
	case errors.Is(err, unix.EACCES): // without privileges it is EPERM
		return "", fmt.Errorf("address %v on %s: labels need IPv6, which is disabled there: sysctl -w %s=0", a.Address, a.Device, confKey6(a.Device, "disable_ipv6"))
	case err != nil:
		return "", kernel.Explain(fmt.Errorf("address %v on %s: %w", a.Address, a.Device, err))
	}
	return fmt.Sprintf("address %v of %s was missing: added", a.Address, a.Device), nil
}

// remove takes the address away; it may be gone, and the device too.
func (a addedAddress) remove(h *netlink.Handle) error {
	link, err := h.LinkByName(a.Device)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil
	}
	if err != nil {
		return kernel.Explain(err)
	}
	if err := h.AddrDel(link, a.netlink()); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
		return kernel.Explain(fmt.Errorf("remove address %v from %s: %w", a.Address, a.Device, err))
	}
	return nil
}
