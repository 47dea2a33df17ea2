package hostprog

import (
	"io"
	"net/netip"
	"testing"

	"weft/internal/kernel/kerneltest"
)

// What lacks a descriptor says so, and not that the kernel is too old.
func TestFewDescriptors_errorsNameTheLimit(t *testing.T) {
	top := kerneltest.Topology(t, "fat-tree:k=4")
	spray := SprayConfig{Uplink: "p0", Addresses: []netip.Addr{top.Node(0).Addr}, Topology: top,
		Policy: mustPolicy(t, "drb"), PerPacketTCP: true}
	for _, c := range []struct {
		name string
		open func() (io.Closer, error)
	}{
		{"spray", func() (io.Closer, error) { return AttachSpray(spray) }},
		{"steer", func() (io.Closer, error) { return AttachSteer(SteerConfig{Uplink: "p0", Rules: steered}) }},
	} {
		t.Run(c.name, func(t *testing.T) { kerneltest.FewDescriptors(t, c.open) })
	}
}
