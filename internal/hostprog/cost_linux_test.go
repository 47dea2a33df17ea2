package hostprog

import (
	"encoding/binary"
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
