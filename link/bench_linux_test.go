package link

import (
	"net/netip"
	"testing"
	"time"
)

// BenchmarkDevices measures sending and receiving apart, in ns a packet, batches
// of 16. Sending includes the kernel's routing (TUN) and the way across a veth to
// where the packet is dropped or queued; one packet is up to 1500 bytes or a
// super-segment of 65,000. The other end is a packet socket, whose cost is not
// counted.
func BenchmarkDevices(b *testing.B) {
	for _, kind := range []struct {
		name string
		open func(b *testing.B, c *cable) superDevice
	}{
		{"tun", func(b *testing.B, c *cable) superDevice { return behind(b, TUNConfig{Offload: true}) }},
		{"water", func(b *testing.B, c *cable) superDevice { return behind(b, TUNConfig{}) }},
		{"packet", func(b *testing.B, c *cable) superDevice { return c.openNear(b, PacketConfig{Gateway: far4}) }},
	} {
		for _, size := range []int{1448, 65000} {
			if kind.name == "water" && size > 1448 {
				continue
			}
			name := kind.name + map[bool]string{true: "/packet", false: "/super"}[size == 1448]
			b.Run(name+"/send", func(b *testing.B) {
				c := newCable(b)
				dev := kind.open(b, c)
				benchmark(b, dev, c.openFar(b, PacketConfig{Gateway: near4}), true, benchFlow(behind4, far4), size)
			})
			b.Run(name+"/receive", func(b *testing.B) {
				c := newCable(b)
				dev := kind.open(b, c)
				to := behind4
				if _, ok := dev.(*Packet); ok {
					to = netip.MustParseAddr("10.99.0.1") // the kernel drops its copy
				}
				benchmark(b, c.openFar(b, PacketConfig{Gateway: near4}), dev, false, benchFlow(far4, to), size)
			})
		}
	}
}

func benchFlow(src, dst netip.Addr) *traffic {
	return &traffic{src: src, dst: dst, proto: 17, port: 5001, mss: 1448}
}

func benchmark(b *testing.B, tx, rx superDevice, sending bool, f *traffic, size int) {
	const batch = 16
	var out [][]byte
	for range batch {
		out = append(out, f.packet(make([]byte, SuperHeadroom+MaxSuperLen), SuperHeadroom, size))
	}
	in, sizes := buffers(64, SuperHeadroom+MaxSuperLen)
	var sends, receives time.Duration
	lost := tx.Drops() + rx.Drops()
	for b.Loop() {
		start := time.Now()
		tx.WriteSuper(out, SuperHeadroom)
		sent := time.Now()
		for got := 0; got < batch*size; {
			n, err := rx.ReadSuper(in, sizes, SuperHeadroom)
			if err != nil {
				b.Fatal(err)
			}
			for i := range n {
				got += sizes[i] - f.headerLen()
			}
		}
		sends += sent.Sub(start)
		receives += time.Since(sent)
	}
	took := receives
	if sending {
		took = sends
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(took.Nanoseconds())/float64(b.N*batch), "ns/packet")
	b.ReportMetric(float64(size*8*b.N*batch)/float64(took.Nanoseconds()), "Gbit/s")
	if d := tx.Drops() + rx.Drops() - lost; d > 0 {
		b.Errorf("%d drops", d)
	}
}
