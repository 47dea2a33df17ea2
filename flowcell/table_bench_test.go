package flowcell

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// numbered is the n-th of a million flows between hosts of one fabric.
func numbered(n int) FiveTuple {
	return FiveTuple{
		Src: Address{0, mapped | 10<<24 | uint64(n)%251<<8 | 2}, Dst: Address{0, mapped | 10<<24 | uint64(n)%1021<<8 | 3},
		SrcPort: uint16(n), DstPort: uint16(n >> 16), Proto: ProtoTCP,
	}
}

// trace is a million packets of so many flows.
func trace(flows int, kind string) []Packet {
	rng := rand.New(rand.NewPCG(5, uint64(flows)))
	draw := func() int { return rng.IntN(flows) }
	if kind == "zipf" {
		zipf := rand.NewZipf(rng, 1.1, 1, uint64(flows-1))
		draw = func() int { return int(zipf.Uint64()) }
	}
	pkts := make([]Packet, 1<<20)
	for i := range pkts {
		pkts[i].Flow = numbered(draw())
	}
	return pkts
}

// Compare with BenchmarkPointerChase: one miss for every packet is what a
// single look-up cannot avoid where flows are many.
func BenchmarkTable_get(b *testing.B) {
	for _, kind := range []string{"uniform", "zipf"} {
		for _, flows := range []int{10_000, 100_000, 1_000_000} {
			pkts := trace(flows, kind)
			name := func(how string) string { return fmt.Sprintf("%s/%d/%s", kind, flows, how) }

			table := NewTable[uint64](TableConfig[uint64]{Capacity: flows, Seed: 1})
			for i := range flows {
				key := numbered(i)
				table.Use(&key, 0)
			}
			b.Run(name("single"), func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					*table.Get(&pkts[i%len(pkts)].Flow, time.Duration(i))++
				}
			})
			b.Run(name("batch64"), func(b *testing.B) {
				all := make([]Run[uint64], 0, 64)
				var runs []Run[uint64]
				left := 0
				for i := 0; b.Loop(); i++ {
					if i%64 == 0 {
						at := i % len(pkts)
						all = table.GetRuns(pkts[at:at+64], time.Duration(i), all[:0])
						runs, left = all, all[0].Packets
					}
					for left == 0 {
						runs = runs[1:]
						left = runs[0].Packets
					}
					*runs[0].Value++
					left--
				}
			})
			table = nil

			m := make(map[FiveTuple]*uint64)
			for i := range flows {
				m[numbered(i)] = new(uint64)
			}
			b.Run(name("map"), func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					*m[pkts[i%len(pkts)].Flow]++
				}
			})
		}
	}
}

func BenchmarkTable_getHot(b *testing.B) {
	for _, flows := range []int{1, 2, 64} {
		b.Run(fmt.Sprint(flows), func(b *testing.B) {
			table := NewTable[uint64](TableConfig[uint64]{Capacity: 100, Seed: 1})
			keys := make([]FiveTuple, flows)
			for i := range keys {
				keys[i] = numbered(i)
				table.Use(&keys[i], 0)
			}
			for i := 0; b.Loop(); i++ {
				*table.Get(&keys[i&(flows-1)], time.Duration(i))++
			}
		})
	}
}

// Every look-up adds a flow and evicts another.
func BenchmarkTable_useEvicting(b *testing.B) {
	table := NewTable[uint64](TableConfig[uint64]{Capacity: 1 << 16, Seed: 1})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		key := numbered(i)
		table.Use(&key, time.Duration(i))
	}
}

// The machine's bound: every load is of a cache line that the load before it
// names.
func BenchmarkPointerChase(b *testing.B) {
	const line = 64 / 8
	for _, mb := range []int{1, 4, 16, 64, 256, 512} {
		b.Run(fmt.Sprintf("%dMB", mb), func(b *testing.B) {
			lines := mb << 20 / 64
			memory := make([]uint64, lines*line)
			order := rand.New(rand.NewPCG(5, 0)).Perm(lines)
			for i, at := range order {
				memory[at*line] = uint64(order[(i+1)%lines] * line)
			}
			at := uint64(0)
			for b.Loop() {
				at = memory[at]
			}
			sink = at
		})
	}
}

var sink uint64
