package switchd

import "github.com/vishvananda/netlink"

// setPort sets a device of the calling thread's namespace up or down.
func setPort(name string, up bool) error {
	h, err := netlink.NewHandle() // the package's own may be of another namespace
	if err != nil {
		return err
	}
	defer h.Close()
	l, err := h.LinkByName(name)
	if err != nil {
		return err
	}
	if up {
		return h.LinkSetUp(l)
	}
	return h.LinkSetDown(l)
}

// portIndex is a device's number in the calling thread's namespace.
func portIndex(name string) (int, error) {
	h, err := netlink.NewHandle()
	if err != nil {
		return 0, err
	}
	defer h.Close()
	l, err := h.LinkByName(name)
	if err != nil {
		return 0, err
	}
	return l.Attrs().Index, nil
}
