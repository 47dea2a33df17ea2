package spray

import (
	"testing"
	"unsafe"

	"weft/topology"
)

func TestPairs_areForgottenAndBounded(t *testing.T) {
	p := newPairTable()
	kept, _ := p.use(0, 1)
	const n = maxIdle + 5000
	for i := range n {
		x, added := p.use(5, topology.NodeID(10+i))
		if !added {
			t.Fatal("a new pair is known")
		}
		p.leave(x)
	}
	if p.idle != maxIdle || len(p.list) != maxIdle+2 || len(p.index) != maxIdle+1 {
		t.Errorf("%d idle, %d in the list, %d known", p.idle, len(p.list), len(p.index))
	}
	if again, added := p.use(0, 1); added || again != kept || p.list[kept].flows != 2 {
		t.Error("a pair in use was forgotten")
	}
	if _, added := p.use(5, 10+n-1); added {
		t.Error("the latest pair was forgotten")
	}
}

func TestPair_fillsCacheLines(t *testing.T) {
	const line = 64
	var p pair
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("laid out for 64 bits")
	}
	const usual = 40 // of a selector: what it needs where paths are not random
	data, ack := unsafe.Offsetof(p.selectors), unsafe.Offsetof(p.selectors)+unsafe.Offsetof(p.selectors.ack)
	if unsafe.Sizeof(p)%line != 0 || data+usual > line || ack < line || ack+usual > 2*line {
		t.Errorf("a pair has %d bytes, its selectors begin at %d and %d", unsafe.Sizeof(p), data, ack)
	}
}
