package link

import (
	"io"
	"net/netip"
	"testing"

	"weft/internal/shortage/few"
)

// What lacks a descriptor says so, and not what else might be missing.
func TestFewDescriptors_errorsNameTheLimit(t *testing.T) {
	for _, c := range []struct {
		name string
		open func() (io.Closer, error)
	}{
		{"tun", func() (io.Closer, error) { return OpenTUN(TUNConfig{Name: "weft7", Queues: 3}) }},
		{"tun with offloads", func() (io.Closer, error) { return OpenTUN(TUNConfig{Name: "weft7", Offload: true, Queues: 3}) }},
		{"udp", func() (io.Closer, error) {
			return OpenUDP(UDPConfig{Listen: netip.AddrPortFrom(near4, 0), Paths: 8})
		}},
		{"packet", func() (io.Closer, error) { return OpenPacket(PacketConfig{Interface: "near0", Gateway: far4}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			newCable(t)
			few.Descriptors(t, c.open)
		})
	}
}
