package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"weft/topology"
)

// ownPlace finds the device that has an address of a host of the fabric.
func ownPlace(t *topology.Topology) (self netip.Addr, device string, err error) {
	devices, err := net.Interfaces()
	if err != nil {
		return self, "", fmt.Errorf("list of devices: %w", err)
	}
	var up string
	for _, d := range devices {
		if d.Flags&net.FlagLoopback == 0 && d.Flags&net.FlagUp != 0 && len(d.HardwareAddr) > 0 && up == "" {
			up = d.Name
		}
		list, err := d.Addrs()
		if err != nil {
			return self, "", fmt.Errorf("addresses of %s: %w", d.Name, err)
		}
		for _, a := range list {
			p, err := netip.ParsePrefix(a.String())
			if err != nil {
				continue
			}
			if host, _, ok := t.HostAt(p.Addr().Unmap()); ok {
				self, device = host, d.Name
				if d.Flags&net.FlagLoopback == 0 {
					return self, device, nil
				}
			}
		}
	}
	if !self.IsValid() || up == "" {
		return self, "", errors.New("no device here has the address of a host of the fabric: is this one of its hosts? --topology names the fabric")
	}
	return self, up, nil
}
