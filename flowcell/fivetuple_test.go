package flowcell

import (
	"fmt"
	"math/bits"
	"testing"
)

func TestString_readsLikeTcpdump(t *testing.T) {
	f := tuple(ProtoTCP, "10.0.0.2:40000", "10.3.1.3:80")
	if got, want := f.String(), "6 10.0.0.2:40000 > 10.3.1.3:80"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestHash_isEqualForEqualAndDependsOnEveryBit(t *testing.T) {
	f := tuple(ProtoTCP, "10.0.0.2:40000", "10.3.1.3:80")
	g := f
	if f.Hash(1) != g.Hash(1) {
		t.Fatal("differs for equal five-tuples")
	}
	seen := map[uint64]string{f.Hash(1): "itself", f.Hash(2): "another seed"}
	flip := func(name string, edit func(*FiveTuple)) {
		h := f
		edit(&h)
		if was, ok := seen[h.Hash(1)]; ok {
			t.Errorf("%s hashes like %s", name, was)
		}
		seen[h.Hash(1)] = name
	}
	for i := range 64 {
		flip(fmt.Sprint("source bit ", i), func(f *FiveTuple) { f.Src.lo ^= 1 << i })
		flip(fmt.Sprint("source bit ", 64+i), func(f *FiveTuple) { f.Src.hi ^= 1 << i })
		flip(fmt.Sprint("destination bit ", i), func(f *FiveTuple) { f.Dst.lo ^= 1 << i })
		flip(fmt.Sprint("destination bit ", 64+i), func(f *FiveTuple) { f.Dst.hi ^= 1 << i })
	}
	for i := range 16 {
		flip(fmt.Sprint("source port bit ", i), func(f *FiveTuple) { f.SrcPort ^= 1 << i })
		flip(fmt.Sprint("destination port bit ", i), func(f *FiveTuple) { f.DstPort ^= 1 << i })
	}
	for i := range 8 {
		flip(fmt.Sprint("protocol bit ", i), func(f *FiveTuple) { f.Proto ^= 1 << i })
	}
	flip("the other direction", func(f *FiveTuple) {
		f.Src, f.Dst, f.SrcPort, f.DstPort = f.Dst, f.Src, f.DstPort, f.SrcPort
	})
}

// Flows that differ as little as those of one machine do: consecutive ports,
// consecutive hosts. Seven paths, so that no power of two helps.
func TestHash_spreadsAlikeFlowsEvenly(t *testing.T) {
	const paths, flows = 7, 14000
	for seed := range uint64(5) {
		for name, vary := range map[string]func(f *FiveTuple, i int){
			"ports": func(f *FiveTuple, i int) { f.SrcPort += uint16(i) },
			"hosts": func(f *FiveTuple, i int) { f.Src.lo = f.Src.lo&^0xffff | uint64(i) },
		} {
			var counts [paths]int
			for i := range flows {
				f := tuple(ProtoTCP, "10.0.0.2:30000", "10.3.1.3:80")
				vary(&f, i)
				counts[f.Hash(seed)%paths]++
			}
			chi := 0.0
			for _, c := range counts {
				d := float64(c) - flows/paths
				chi += d * d / (flows / paths)
			}
			if chi > 22.5 { // exceeded once in 1,000 at 6 degrees of freedom
				t.Errorf("seed %d, %s: %v, chi² %.1f", seed, name, counts, chi)
			}
		}
	}
}

// One bit of input turns half the bits of the hash: two seeds make two
// functions, and taking the hash modulo anything is sound.
func TestHash_avalanches(t *testing.T) {
	turned, n := 0, 0
	for i := range 1000 {
		f := tuple(ProtoTCP, "10.0.0.2:30000", "10.3.1.3:80")
		f.SrcPort += uint16(i)
		g := f
		g.DstPort ^= 1 << (i % 16)
		turned += bits.OnesCount64(f.Hash(3) ^ g.Hash(3))
		n += 64
	}
	if share := float64(turned) / float64(n); share < 0.48 || share > 0.52 {
		t.Errorf("%.3f of the bits turn, want half", share)
	}
}

// Half an address that equals a constant of the hash must not hide the other
// half: whoever may choose addresses could fill a table with collisions.
func TestHash_noAddressHidesAnother(t *testing.T) {
	constants := []uint64{0, 0xa0761d6478bd642f, 0xe7037ed1a0b428db, 0x8ebc6af09c88c6e3, 0x589965cc75374cc3, 0x1d8e4e27c47d124f}
	for seed := range uint64(4) {
		seen := map[uint64]bool{}
		seed += 1000 // 0 is as good as none
		n := 0
		for _, c := range constants {
			for i := range uint64(50) {
				for _, f := range []FiveTuple{
					{Src: Address{c, 7 << i}}, {Src: Address{7 << i, c}},
					{Dst: Address{c, 7 << i}}, {Dst: Address{7 << i, c}},
				} {
					seen[f.Hash(seed)] = true
					n++
				}
			}
		}
		if len(seen) != n {
			t.Errorf("seed %d: %d five-tuples have %d hashes", seed, n, len(seen))
		}
	}
}

func BenchmarkHash(b *testing.B) {
	f := tuple(ProtoTCP, "10.0.0.2:40000", "10.3.1.3:80")
	for b.Loop() {
		f.SrcPort += uint16(f.Hash(1))
	}
}

// Switches in a row hash the same flows with seeds of their own: what one
// chooses must say nothing of what the next does, or ECMP polarises.
func TestHash_seedsAreIndependent(t *testing.T) {
	const flows = 4000
	for seed := range uint64(8) {
		agree := 0
		for i := range flows {
			f := tuple(ProtoTCP, "10.0.0.2:30000", "10.3.1.3:80")
			f.SrcPort += uint16(i)
			if f.Hash(seed)&1 == f.Hash(seed+1)&1 {
				agree++
			}
		}
		if agree < flows/2-160 || agree > flows/2+160 { // five standard deviations
			t.Errorf("seeds %d and %d agree on %d of %d flows", seed, seed+1, agree, flows)
		}
	}
}

// equal is ==, also where fields differ by the same bits.
func TestEqual_isEquality(t *testing.T) {
	values := []uint64{0, 1, 2, 1 << 63, mapped}
	small := []uint16{0, 1, 2}
	var all []FiveTuple
	for _, hi := range values[:2] {
		for _, a := range values {
			for _, b := range values {
				for _, p := range small {
					for _, q := range small {
						all = append(all, FiveTuple{Address{hi, a}, Address{hi, b}, p, q, uint8(p)}, FiveTuple{Address{0, a}, Address{hi, b}, q, p, 6})
					}
				}
			}
		}
	}
	for i := range all {
		for j := range all {
			if got, want := all[i].equal(&all[j]), all[i] == all[j]; got != want {
				t.Fatalf("%v, %v: %v", all[i], all[j], got)
			}
		}
	}
}
