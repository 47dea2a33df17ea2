//go:build !linux

package uplink

import (
	"errors"
	"net/netip"
	"time"

	"weft/link"
	"weft/liveness"
	"weft/stack"
	"weft/topology"
)

// Device is a way into the fabric; weft has it on Linux only.
type Device struct{ link.TUN }

// Open returns an error: programs at an uplink are supported on Linux only.
func Open(c stack.Config, _ Options) (*Device, error) {
	if _, _, err := check(&c); err != nil {
		return nil, err
	}
	return nil, errors.New("uplink: needs the TUN, packet sockets and eBPF of Linux; elsewhere link.OpenUDP carries a Host's packets, by stack.Config.Tunnel")
}

// Encapsulates returns false.
func (*Device) Encapsulates() bool { return false }

// Interface returns "".
func (*Device) Interface() string { return "" }

// SetTopology does nothing.
func (*Device) SetTopology(*topology.Topology) error { return nil }

// SetCarriage does nothing.
func (*Device) SetCarriage(*liveness.Carriage) error { return nil }

// Choose returns an error.
func (*Device) Choose(netip.Prefix, int, time.Duration) error { return errors.ErrUnsupported }

// Active returns an error.
func (*Device) Active(func(rack netip.Prefix, host netip.Addr, flowcells uint64)) error {
	return errors.ErrUnsupported
}

// Holds returns false.
func (*Device) Holds(int) bool { return false }

// Offloads returns "".
func (*Device) Offloads() string { return "" }

// Refused returns "".
func (*Device) Refused() string { return "" }

// Stats returns zeros.
func (*Device) Stats() (Stats, error) { return Stats{}, nil }
