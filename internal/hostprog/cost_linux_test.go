package hostprog

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/internal/elephant"
	"weft/internal/kernel/kerneltest"
)

// BenchmarkSpray is what the program costs a full packet of one of 64 flows, by policy: the
// median. Each run has a packet of its own, as the kernel hands over one that is not
// encapsulated yet.
func BenchmarkSpray(b *testing.B) {
	for _, name := range []string{"ecmp", "drb", "presto", "luopan", "letflow", "conga", "ecmp+elephants", "drb+elephants"} {
		b.Run(name, func(b *testing.B) {
			name, elephants := strings.CutSuffix(name, "+elephants")
			l := sprayLab(b)
			hosts := kerneltest.Hosts(l.Config.Topology)
			s := &sprayed{lab: l, src: hosts[0], dst: hosts[len(hosts)-1]}
			cfg := s.config(b, name)
			if elephants {
				cfg.Elephants = elephant.PinAndCount
			}
			s.attach(b, cfg)
			h := kerneltest.IPv4{Frag: 0x4000, TTL: 64, Protocol: 6, Src: s.src.Addr, Dst: s.dst.Addr}
			segment := make([]byte, 1460)
			segment[12], segment[13] = 0x50, 0x10
			var took []time.Duration
			for i := range b.N {
				h.ID = uint16(i)
				binary.BigEndian.PutUint16(segment, uint16(i%64))
				binary.BigEndian.PutUint32(segment[4:], uint32(i/64*1440))
				_, each, err := s.spray.at.Prog.Benchmark(frameOf(h.Bytes(segment)), 1, nil)
				if err != nil {
					b.Fatal(err)
				}
				took = append(took, each)
			}
			if n := s.stats(b).Encapsulated; n != uint64(b.N) {
				b.Fatalf("%d of %d packets were encapsulated", n, b.N)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2]), "ns/packet")
		})
	}
}

// BenchmarkSpray_forwarding is what the programs cost a full packet at a host that notes what it
// forwards, and at one that does not: a packet of its own, one of a container, and one of neither,
// which a router passes on; when it leaves, and when it arrives. Own packets have a socket here.
func BenchmarkSpray_forwarding(b *testing.B) {
	container, foreign := netip.MustParseAddr("10.244.0.7"), netip.MustParseAddr("192.0.2.7")
	for _, c := range []struct {
		name              string
		forwards, arrives bool
		from              netip.Addr // the zero Addr: the host's own
	}{
		{"own", false, false, netip.Addr{}}, {"own+forwarded", true, false, netip.Addr{}}, {"container+forwarded", true, false, container},
		{"router", false, false, foreign}, {"router+forwarded", true, false, foreign},
		{"arrives+forwarded", true, true, foreign},
	} {
		b.Run(c.name, func(b *testing.B) {
			l := sprayLab(b)
			hosts := kerneltest.Hosts(l.Config.Topology)
			s := &sprayed{lab: l, src: hosts[0], dst: hosts[len(hosts)-1]}
			cfg := s.config(b, "drb")
			if c.forwards {
				table, err := NewForwarded(0)
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { table.Close() })
				cfg.Forwarded = table
				for i := range 256 {
					cfg.Behind = append(cfg.Behind, Behind{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(i), 0}), 24), s.src.Addr})
				}
			}
			s.attach(b, cfg)
			from := c.from
			if !from.IsValid() {
				from = s.src.Addr
			}
			program := s.spray.at.Prog
			if c.arrives {
				program = s.spray.twins[len(s.spray.twins)-1].at.Prog
			}
			h := kerneltest.IPv4{Frag: 0x4000, TTL: 64, Protocol: 6, Src: from, Dst: s.dst.Addr}
			segment := make([]byte, 1440)
			segment[12], segment[13] = 0x50, 0x10
			var took []time.Duration
			for i := range b.N {
				h.ID = uint16(i)
				binary.BigEndian.PutUint16(segment, uint16(i%64))
				binary.BigEndian.PutUint32(segment[4:], uint32(i/64*1420))
				_, each, err := program.Benchmark(frameOf(h.Bytes(segment)), 1, nil)
				if err != nil {
					b.Fatal(err)
				}
				took = append(took, each)
			}
			if n := s.stats(b).Encapsulated; n > 0 != (!c.arrives && from != foreign) {
				b.Fatalf("%d of %d packets were encapsulated", n, b.N)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2]), "ns/packet")
		})
	}
}
